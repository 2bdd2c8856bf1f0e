package main

import (
	"context"
	_ "embed"
	"fmt"
	"sort"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

//go:embed manifests.yaml
var manifests string

// change sets one field of an object of the manifests.
type change struct {
	kind, name string
	value      any
	path       []string
}

// applier applies the manifests and prints the result for each object.
type applier struct {
	manager *ssa.ResourceManager
	client  client.Client
}

func flux(ctx context.Context, config *rest.Config) error {
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return err
	}
	direct, err := client.New(config, client.Options{Mapper: mapper})
	if err != nil {
		return err
	}
	poller := polling.NewStatusPoller(direct, mapper, polling.Options{})
	owner := ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"}
	a := &applier{manager: ssa.NewResourceManager(direct, poller, owner), client: direct}
	steps := []func(context.Context) error{
		a.applyTwice, a.diffAndCorrect, a.replaceImmutable, a.removeAll,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Returns the objects of the manifests with the owner's labels and these changes.
func (a *applier) objects(changes ...change) ([]*unstructured.Unstructured, error) {
	objects, err := utils.ReadObjects(strings.NewReader(manifests))
	if err != nil {
		return nil, err
	}
	a.manager.SetOwnerLabels(objects, "peers", "gitops")
	for _, change := range changes {
		object := named(objects, change.kind, change.name)
		if err := unstructured.SetNestedField(object.Object, change.value, change.path...); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func named(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	panic("the manifests have no " + kind + " " + name)
}

// Applies objects and prints the action for each of them.
func (a *applier) apply(
	ctx context.Context, title string, objects []*unstructured.Unstructured,
) error {
	options := ssa.DefaultApplyOptions()
	options.Force = true
	options.WaitInterval = lookInterval
	options.WaitTimeout = waitLimit
	set, err := a.manager.ApplyAllStaged(ctx, objects, options)
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	printSet(title, set)
	return nil
}

func printSet(title string, set *ssa.ChangeSet) {
	var lines []string
	for _, entry := range set.Entries {
		lines = append(lines, entry.String())
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Printf("%s: %s\n", title, line)
	}
}

func (a *applier) wait(objects []*unstructured.Unstructured) error {
	return a.manager.Wait(objects, waitOptions())
}

func waitOptions() ssa.WaitOptions {
	return ssa.WaitOptions{Interval: lookInterval, Timeout: waitLimit}
}

// All objects are created once. The second apply, after the server was killed, changes nothing.
func (a *applier) applyTwice(ctx context.Context) error {
	objects, err := a.objects()
	if err != nil {
		return err
	}
	if err := a.apply(ctx, "first apply", objects); err != nil {
		return err
	}
	restart()
	if err := restarted(); err != nil {
		return err
	}
	if err := a.wait(objects); err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	fmt.Println("wait: all objects are current")
	if objects, err = a.objects(); err != nil {
		return err
	}
	return a.apply(ctx, "second apply", objects)
}

// An edit by another manager is found by a dry run and undone by the next apply.
func (a *applier) diffAndCorrect(ctx context.Context) error {
	objects, err := a.objects()
	if err != nil {
		return err
	}
	live := named(objects, "ConfigMap", "settings").DeepCopy()
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"data":{"mode":"manual","added":"by hand"}}`))
	if err := a.client.Patch(ctx, live, patch, client.FieldOwner("kubectl-edit")); err != nil {
		return err
	}
	changed, err := a.objects(
		change{"Secret", "token", "bmV3", []string{"data", "token"}},
		change{"Gadget", "first", int64(7), []string{"spec", "size"}},
	)
	if err != nil {
		return err
	}
	for _, object := range changed {
		entry, before, after, err := a.manager.Diff(ctx, object, ssa.DefaultDiffOptions())
		if err != nil {
			return fmt.Errorf("diff: %w", err)
		}
		fmt.Printf("diff: %s\n", entry)
		for _, side := range []*unstructured.Unstructured{before, after} {
			if side != nil {
				fmt.Printf("diff: data %v spec %v\n", side.Object["data"], side.Object["spec"])
			}
		}
	}
	if err := a.apply(ctx, "correction", changed); err != nil {
		return err
	}
	return a.show(ctx, "ConfigMap", "settings")
}

// Prints the data of an object and its field managers.
func (a *applier) show(ctx context.Context, kind, name string) error {
	objects, err := a.objects()
	if err != nil {
		return err
	}
	live := named(objects, kind, name)
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return err
	}
	fmt.Printf("%s %s: %v\n", kind, name, live.Object["data"])
	var managers []string
	for _, entry := range live.GetManagedFields() {
		managers = append(managers, fmt.Sprint(entry.Manager, " ", entry.Operation))
	}
	sort.Strings(managers)
	fmt.Printf("%s %s: managers %q\n", kind, name, managers)
	return nil
}

// An object with a change of an immutable field is deleted and created again.
func (a *applier) replaceImmutable(ctx context.Context) error {
	objects, err := a.objects(
		change{"RoleBinding", "reader", "writer", []string{"roleRef", "name"}},
		change{"Secret", "sealed", "b3RoZXI=", []string{"data", "key"}},
	)
	if err != nil {
		return err
	}
	return a.apply(ctx, "replacement", objects)
}

func (a *applier) removeAll(ctx context.Context) error {
	objects, err := a.objects()
	if err != nil {
		return err
	}
	set, err := a.manager.DeleteAll(ctx, objects, ssa.DefaultDeleteOptions())
	if err != nil {
		return fmt.Errorf("deletion: %w", err)
	}
	printSet("deletion", set)
	if err := a.manager.WaitForTermination(objects, waitOptions()); err != nil {
		return fmt.Errorf("termination: %w", err)
	}
	fmt.Println("termination: all objects are gone")
	return nil
}
