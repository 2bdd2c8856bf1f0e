package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	namespace = "operator"
	finalizer = "peers.example.org/operator"
	// Label of each ConfigMap, with the Widget's color.
	colorLabel = "peers.example.org/color"
	// Widgets that are made.
	widgets = 200
	// The Widget after which the server is killed.
	killAfter = 70
	// Reconcilers of one manager.
	workers = 4
	// The lease outlives a restart of the server on a loaded machine.
	leaseDuration = 90 * time.Second
	renewDeadline = 60 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

var widgetKind = schema.GroupVersionKind{Group: "peers.example.org", Version: "v1", Kind: "Widget"}

func newWidget(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(widgetKind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// reconciler keeps a ConfigMap for each Widget and says so in the Widget's status.
type reconciler struct {
	client client.Client
	scheme *runtime.Scheme
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := newWidget(request.Name)
	if err := r.client.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(widget, finalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(r.client.Update(ctx, widget))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(widget, finalizer) {
		// The watch reports the change, and the rest follows then.
		return ctrl.Result{}, r.client.Update(ctx, widget)
	}
	color, _, _ := unstructured.NestedString(widget.Object, "spec", "color")
	owned := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: request.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, owned, func() error {
		owned.Labels = map[string]string{colorLabel: color}
		owned.Data = map[string]string{"color": color}
		return controllerutil.SetControllerReference(widget, owned, r.scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := client.MergeFrom(widget.DeepCopy())
	ready := map[string]any{"type": "Ready", "status": "True", "reason": color}
	widget.Object["status"] = map[string]any{
		"observedGeneration": widget.GetGeneration(),
		"conditions":         []any{ready},
	}
	return ctrl.Result{}, r.client.Status().Patch(ctx, widget, before)
}

// Starts a manager that takes part in the election; the function returned ends it and gives its
// lease back.
func startManager(ctx context.Context, cluster *rest.Config) (func() error, error) {
	again := true
	lease, renew, retry := leaseDuration, renewDeadline, retryPeriod
	manager, err := ctrl.NewManager(cluster, ctrl.Options{
		Metrics:                       server.Options{BindAddress: "0"},
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller:                    config.Controller{SkipNameValidation: &again},
		LeaderElection:                true,
		LeaderElectionID:              "operator",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
	})
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(newWidget("")).
		Owns(&core.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{client: manager.GetClient(), scheme: manager.GetScheme()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

// overseer makes Widgets and looks at what the operator makes of them.
type overseer struct {
	client client.Client
}

func operator(ctx context.Context, cluster *rest.Config) error {
	direct, err := client.New(cluster, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	o := &overseer{client: direct}
	space := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}}
	if err := direct.Create(ctx, space); err != nil {
		return err
	}
	stop, err := startManager(ctx, cluster)
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{o.create, o.reconciled, o.ownedReturns} {
		if err := step(ctx); err != nil {
			return errors.Join(err, stop())
		}
	}
	if err := errors.Join(o.lease(ctx, "first manager", 0), stop()); err != nil {
		return err
	}
	if stop, err = startManager(ctx, cluster); err != nil {
		return err
	}
	return errors.Join(o.change(ctx), o.lease(ctx, "second manager", 1), o.remove(ctx), stop())
}

// Makes all Widgets. A request that the killed server left without an answer is repeated.
func (o *overseer) create(ctx context.Context) error {
	for at := range widgets {
		name := fmt.Sprintf("w-%03d", at)
		err := until(ctx, "creation of "+name, func(ctx context.Context) (bool, error) {
			widget := newWidget(name)
			widget.Object["spec"] = map[string]any{"color": "red"}
			err := o.client.Create(ctx, widget)
			if apierrors.IsAlreadyExists(err) {
				return true, nil
			}
			return err == nil, err
		})
		if err != nil {
			return err
		}
		if at == killAfter {
			restart()
		}
	}
	return restarted()
}

// Lists the Widgets, and the ConfigMaps that a selector chooses.
func (o *overseer) list(ctx context.Context, selector client.ListOption) (
	[]unstructured.Unstructured, []core.ConfigMap, error,
) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(widgetKind)
	var owned core.ConfigMapList
	err := errors.Join(
		o.client.List(ctx, list, client.InNamespace(namespace)),
		o.client.List(ctx, &owned, client.InNamespace(namespace), selector),
	)
	return list.Items, owned.Items, err
}

// Waits until each Widget has a status for its generation and a ConfigMap of its color.
func (o *overseer) settled(ctx context.Context, color string) error {
	what := "a ConfigMap and a status for each Widget"
	return until(ctx, what, func(ctx context.Context) (bool, error) {
		all, owned, err := o.list(ctx, client.MatchingLabels{colorLabel: color})
		if err != nil {
			return false, err
		}
		done := 0
		for _, widget := range all {
			seen, _, _ := unstructured.NestedInt64(widget.Object, "status", "observedGeneration")
			if seen == widget.GetGeneration() && controllerutil.ContainsFinalizer(&widget, finalizer) {
				done++
			}
		}
		if len(all) != widgets || done != widgets || len(owned) != widgets {
			return false, fmt.Errorf(
				"of %d Widgets %d have their status, %d a ConfigMap", len(all), done, len(owned))
		}
		return true, nil
	})
}

func (o *overseer) reconciled(ctx context.Context) error {
	if err := o.settled(ctx, "red"); err != nil {
		return err
	}
	fmt.Printf("%d of %d Widgets are reconciled\n", widgets, widgets)
	return nil
}

// A ConfigMap that is deleted by hand is made anew.
func (o *overseer) ownedReturns(ctx context.Context) error {
	key := client.ObjectKey{Namespace: namespace, Name: "w-007"}
	var owned core.ConfigMap
	if err := o.client.Get(ctx, key, &owned); err != nil {
		return err
	}
	first := owned.UID
	if err := o.client.Delete(ctx, &owned); err != nil {
		return err
	}
	if err := until(ctx, "the deleted ConfigMap", func(ctx context.Context) (bool, error) {
		var again core.ConfigMap
		err := o.client.Get(ctx, key, &again)
		return err == nil && again.UID != first, err
	}); err != nil {
		return err
	}
	fmt.Println("a deleted ConfigMap is back")
	return nil
}

// Waits until the lease has a holder and prints how often it changed hands.
func (o *overseer) lease(ctx context.Context, title string, transitions int32) error {
	key := client.ObjectKey{Namespace: namespace, Name: "operator"}
	return until(ctx, title+" with the lease", func(ctx context.Context) (bool, error) {
		var lease coordination.Lease
		if err := o.client.Get(ctx, key, &lease); err != nil {
			return false, err
		}
		spec := lease.Spec
		if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.LeaseTransitions == nil {
			return false, errors.New("the lease has no holder")
		}
		if *spec.LeaseTransitions < transitions {
			return false, fmt.Errorf("the lease has changed hands %d times", *spec.LeaseTransitions)
		}
		fmt.Printf("%s: the lease has changed hands %d times\n", title, *spec.LeaseTransitions)
		return true, nil
	})
}

// Gives each Widget another color; the second manager follows.
func (o *overseer) change(ctx context.Context) error {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"color":"blue"}}`))
	for at := range widgets {
		if err := o.client.Patch(ctx, newWidget(fmt.Sprintf("w-%03d", at)), patch); err != nil {
			return err
		}
	}
	if err := o.settled(ctx, "blue"); err != nil {
		return err
	}
	fmt.Printf("%d of %d changes are reconciled\n", widgets, widgets)
	return nil
}

// Deletes all Widgets at once, and lets the server be killed meanwhile.
func (o *overseer) remove(ctx context.Context) error {
	if err := o.client.DeleteAllOf(ctx, newWidget(""), client.InNamespace(namespace)); err != nil {
		return err
	}
	restart()
	if err := restarted(); err != nil {
		return err
	}
	what := "the end of all Widgets and their ConfigMaps"
	err := until(ctx, what, func(ctx context.Context) (bool, error) {
		all, owned, err := o.list(ctx, client.HasLabels{colorLabel})
		if err != nil {
			return false, err
		}
		if len(all)+len(owned) > 0 {
			return false, fmt.Errorf("%d Widgets and %d ConfigMaps are left", len(all), len(owned))
		}
		return true, nil
	})
	if err == nil {
		fmt.Println("no Widget and no ConfigMap is left")
	}
	return err
}
