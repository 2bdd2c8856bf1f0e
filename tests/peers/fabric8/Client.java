import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ConfigMapList;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.GenericKubernetesResourceBuilder;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.MicroTime;
import io.fabric8.kubernetes.api.model.Namespace;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.coordination.v1.Lease;
import io.fabric8.kubernetes.api.model.events.v1.EventBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.MixedOperation;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElector;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * A program that uses the server of KUBECONFIG by fabric8's client, with its default HTTP client.
 *
 * <p>The program prints one line for each result. After a line {@code restart} the server may be
 * killed and started again; the line read from standard input says that the server is back.
 */
public final class Client {
  /** Longest wait for one condition, in seconds. An informer that hangs ends the program by it. */
  private static final int WAIT_LIMIT = 60;

  /** Namespace of all objects. */
  private static final String NAMESPACE = "java";

  /** The kind of scripts/widgets.yaml. */
  private static final ResourceDefinitionContext WIDGETS =
      new ResourceDefinitionContext.Builder()
          .withGroup("peers.example.org")
          .withVersion("v1")
          .withKind("Widget")
          .withPlural("widgets")
          .withNamespaced(true)
          .build();

  private final BufferedReader replies = new BufferedReader(new InputStreamReader(System.in));
  private final KubernetesClient client;
  private final MixedOperation<ConfigMap, ConfigMapList, Resource<ConfigMap>> configMaps;
  private final Log<ConfigMap> configMapLog = new Log<>();
  private final Log<GenericKubernetesResource> widgetLog = new Log<>();

  private Client(KubernetesClient client) {
    this.client = client;
    this.configMaps = client.configMaps();
  }

  /** Runs every step. */
  public static void main(String[] arguments) throws Exception {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      new Client(client).run();
    } catch (Exception error) {
      error.printStackTrace();
      System.exit(1);
    }
    // Threads of the HTTP client may live on.
    System.exit(0);
  }

  private void run() throws Exception {
    Namespace namespace =
        new NamespaceBuilder().withNewMetadata().withName(NAMESPACE).endMetadata().build();
    client.resource(namespace).create();
    SharedIndexInformer<ConfigMap> configMapInformer =
        within(
            "informer of ConfigMaps",
            () -> configMaps.inNamespace(NAMESPACE).withLabel("watched").inform(configMapLog));
    SharedIndexInformer<GenericKubernetesResource> widgetInformer =
        within(
            "informer of Widgets",
            () ->
                client
                    .genericKubernetesResources(WIDGETS)
                    .inNamespace(NAMESPACE)
                    .inform(widgetLog));
    System.out.println("both informers are synchronized");
    changes();
    apply();
    widgets();
    events();
    election();
    System.out.println("restart");
    within("line that says the server is back", () -> replies.readLine());
    afterRestart();
    until("informers that run", () -> configMapInformer.isRunning() && widgetInformer.isRunning());
    names("store of ConfigMaps", configMapInformer.getStore().list());
    names("store of Widgets", widgetInformer.getStore().list());
    configMapInformer.close();
    widgetInformer.close();
  }

  /** Lets an object enter a selector, change, leave it, enter it again and be deleted. */
  private void changes() throws Exception {
    create("a", Map.of("watched", "yes"));
    configMapLog.expect("added a");
    Resource<ConfigMap> a = configMaps.inNamespace(NAMESPACE).withName("a");
    a.edit(old -> with(old, "color", "red"));
    configMapLog.expect("updated a {color=red}");
    a.edit(old -> labeled(old, Map.of("other", "yes")));
    configMapLog.expect("deleted a {color=red}");
    a.edit(old -> labeled(old, Map.of("watched", "yes")));
    configMapLog.expect("added a {color=red}");
    create("unseen", Map.of());
    a.delete();
    configMapLog.expect("deleted a {color=red}");
    for (int i = 0; i < 5; i++) {
      create("page-" + i, Map.of("page", "yes"));
    }
    var options = new ListOptionsBuilder().withLimit(3L).build();
    var paged = configMaps.inNamespace(NAMESPACE).withLabel("page");
    ConfigMapList page = paged.list(options);
    names("first page", page.getItems());
    options.setContinue(page.getMetadata().getContinue());
    names("second page", paged.list(options).getItems());
    ConfigMap generated =
        client
            .resource(
                new ConfigMapBuilder()
                    .withNewMetadata()
                    .withGenerateName("made-")
                    .withNamespace(NAMESPACE)
                    .endMetadata()
                    .build())
            .create();
    System.out.println("generated name: " + generated.getMetadata().getName().matches("made-.{5}"));
  }

  private void apply() {
    System.out.println("applied: " + apply("one", "red", false));
    refused("apply of another manager", () -> apply("two", "blue", false));
    System.out.println("forced: " + apply("two", "blue", true));
    ConfigMap live = configMaps.inNamespace(NAMESPACE).withName("applied").get();
    var managers = live.getMetadata().getManagedFields().stream();
    var operations = managers.map(one -> one.getManager() + " " + one.getOperation());
    System.out.println("managers: " + operations.sorted().toList());
    live.getMetadata().setResourceVersion("1");
    refused("update of an old version", () -> client.resource(live).update());
  }

  private Map<String, String> apply(String manager, String color, boolean force) {
    PatchContext context =
        new PatchContext.Builder()
            .withPatchType(PatchType.SERVER_SIDE_APPLY)
            .withFieldManager(manager)
            .withForce(force)
            .build();
    ConfigMap wanted = configMap("applied", Map.of(), Map.of("color", color));
    return client.resource(wanted).patch(context).getData();
  }

  private void widgets() throws Exception {
    var widgets = client.genericKubernetesResources(WIDGETS).inNamespace(NAMESPACE);
    GenericKubernetesResource made = widgets.resource(widget("first", "red")).create();
    widgetLog.expect("added first");
    System.out.println("defaults: " + made.get("spec"));
    made.setAdditionalProperty("status", Map.of("replicas", 2));
    GenericKubernetesResource patched = widgets.resource(made).patchStatus();
    widgetLog.expect("updated first");
    System.out.println("status: " + patched.get("status"));
    refused("unknown color", () -> widgets.resource(widget("bad", "pink")).create());
    widgets.resource(widget("second", "blue")).serverSideApply();
    widgetLog.expect("added second");
    names("red Widgets", widgets.withField("spec.color", "red").list().getItems());
    widgets.withName("first").delete();
    widgetLog.expect("deleted first");
  }

  private void events() {
    client
        .events()
        .v1()
        .events()
        .resource(
            new EventBuilder()
                .withNewMetadata()
                .withName("happened")
                .withNamespace(NAMESPACE)
                .endMetadata()
                .withEventTime(new MicroTime(now()))
                .withType("Normal")
                .withReason("Tested")
                .withAction("Test")
                .withNote("The client made this Event.")
                .withReportingController("peers.example.org/java")
                .withReportingInstance("java-1")
                .withNewRegarding()
                .withKind("ConfigMap")
                .withName("applied")
                .withNamespace(NAMESPACE)
                .endRegarding()
                .build())
        .create();
    var events = client.events().v1().events().inNamespace(NAMESPACE).list().getItems();
    names("Events", events);
    System.out.println("reason: " + events.get(0).getReason());
    names("Events of v1", client.v1().events().inNamespace(NAMESPACE).list().getItems());
  }

  private static String now() {
    DateTimeFormatter format = DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'");
    return ZonedDateTime.now(ZoneOffset.UTC).format(format);
  }

  /** Leads, and gives the lease back. */
  private void election() throws Exception {
    CompletableFuture<String> led = new CompletableFuture<>();
    LeaderElector elector =
        client
            .leaderElector()
            .withConfig(
                new LeaderElectionConfigBuilder()
                    .withName("election")
                    .withLock(new LeaseLock(NAMESPACE, "election", "candidate"))
                    .withLeaseDuration(Duration.ofSeconds(90))
                    .withRenewDeadline(Duration.ofSeconds(60))
                    .withRetryPeriod(Duration.ofMillis(500))
                    .withReleaseOnCancel(true)
                    .withLeaderCallbacks(
                        new LeaderCallbacks(() -> led.complete("leads"), () -> {}, leader -> {}))
                    .build())
            .build();
    CompletableFuture<?> running = elector.start();
    System.out.println("candidate: " + led.get(WAIT_LIMIT, TimeUnit.SECONDS));
    List<Lease> leases = client.leases().inNamespace(NAMESPACE).list().getItems();
    names("leases", leases);
    System.out.println("holder: " + leases.get(0).getSpec().getHolderIdentity());
    running.cancel(true);
    until(
        "lease without a holder",
        () -> {
          Lease lease = client.leases().inNamespace(NAMESPACE).withName("election").get();
          String holder = lease.getSpec().getHolderIdentity();
          return holder == null || holder.isEmpty();
        });
    System.out.println("the lease is given back");
  }

  /** Expects each change once after the server is back. */
  private void afterRestart() throws Exception {
    create("b", Map.of("watched", "yes"));
    configMapLog.expect("added b");
    var widgets = client.genericKubernetesResources(WIDGETS).inNamespace(NAMESPACE);
    widgets.withName("second").edit(old -> {
      old.setAdditionalProperty("spec", Map.of("color", "green"));
      return old;
    });
    widgetLog.expect("updated second");
    widgets.withName("second").delete();
    widgetLog.expect("deleted second");
    configMaps.inNamespace(NAMESPACE).withName("b").edit(old -> with(old, "color", "blue"));
    configMapLog.expect("updated b {color=blue}");
  }

  private void create(String name, Map<String, String> labels) {
    client.resource(configMap(name, labels, null)).create();
  }

  private static ConfigMap configMap(
      String name, Map<String, String> labels, Map<String, String> data) {
    return new ConfigMapBuilder()
        .withNewMetadata()
        .withName(name)
        .withNamespace(NAMESPACE)
        .withLabels(labels)
        .endMetadata()
        .withData(data)
        .build();
  }

  private static GenericKubernetesResource widget(String name, String color) {
    return new GenericKubernetesResourceBuilder()
        .withApiVersion("peers.example.org/v1")
        .withKind("Widget")
        .withNewMetadata()
        .withName(name)
        .withNamespace(NAMESPACE)
        .endMetadata()
        .addToAdditionalProperties("spec", Map.of("color", color))
        .build();
  }

  private static ConfigMap with(ConfigMap old, String key, String value) {
    return new ConfigMapBuilder(old).addToData(key, value).build();
  }

  private static ConfigMap labeled(ConfigMap old, Map<String, String> labels) {
    return new ConfigMapBuilder(old).editMetadata().withLabels(labels).endMetadata().build();
  }

  private static void refused(String what, Supplier<?> call) {
    try {
      call.get();
    } catch (KubernetesClientException error) {
      System.out.println(what + ": " + error.getCode() + " " + error.getStatus().getReason());
      return;
    }
    throw new IllegalStateException(what + ": expected a refusal");
  }

  private static void names(String title, List<? extends HasMetadata> objects) {
    var names = objects.stream().map(one -> one.getMetadata().getName());
    System.out.println(title + ": " + names.sorted().toList());
  }

  /** Runs a call that may hang, in a thread of its own and with a deadline. */
  private static <T> T within(String what, Callable<T> call) throws Exception {
    CompletableFuture<T> result = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                result.complete(call.call());
              } catch (Exception error) {
                result.completeExceptionally(error);
              }
            });
    thread.setDaemon(true);
    thread.start();
    try {
      return result.get(WAIT_LIMIT, TimeUnit.SECONDS);
    } catch (java.util.concurrent.TimeoutException late) {
      throw new IllegalStateException(what + ": not there within " + WAIT_LIMIT + " s", late);
    }
  }

  private static void until(String what, Callable<Boolean> holds) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_LIMIT);
    while (!holds.call()) {
      if (System.nanoTime() > end) {
        throw new IllegalStateException(what + ": not there within " + WAIT_LIMIT + " s");
      }
      Thread.sleep(20);
    }
  }

  /** Events of one informer, in their order. */
  private static final class Log<T extends HasMetadata> implements ResourceEventHandler<T> {
    private final List<String> events = new ArrayList<>();
    private int expected = 0;

    /** Waits for the next event, which is this one, and prints it. */
    void expect(String event) throws Exception {
      until("event `" + event + "` after " + seen(), () -> seen().size() > expected);
      List<String> seen = seen();
      if (seen.size() != expected + 1 || !seen.get(expected).equals(event)) {
        throw new IllegalStateException(
            "expected the event `" + event + "` after " + expected + " others, found " + seen);
      }
      expected++;
      System.out.println("event: " + event);
    }

    private synchronized List<String> seen() {
      return List.copyOf(events);
    }

    private synchronized void note(String action, T object) {
      boolean hasData = object instanceof ConfigMap map && !map.getData().isEmpty();
      String data = hasData ? " " + ((ConfigMap) object).getData() : "";
      events.add(action + " " + object.getMetadata().getName() + data);
    }

    @Override
    public void onAdd(T object) {
      note("added", object);
    }

    @Override
    public void onUpdate(T before, T after) {
      // A list after a watch that ended reports each known object as an update.
      String known = before.getMetadata().getResourceVersion();
      if (!known.equals(after.getMetadata().getResourceVersion())) {
        note("updated", after);
      }
    }

    @Override
    public void onDelete(T object, boolean isUnknown) {
      note("deleted", object);
    }
  }
}
