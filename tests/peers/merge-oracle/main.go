// Program merge-oracle executes writes with Kubernetes' own code: one JSON question per line on
// standard input, one JSON answer per line on standard output.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// question is a schema to store (models) or a write (op).
type question struct {
	Models map[string]*spec.Schema `json:"models"`

	Schema      int                    `json:"schema"`
	Op          string                 `json:"op"`
	APIVersion  string                 `json:"apiVersion"`
	Kind        string                 `json:"kind"`
	Subresource string                 `json:"subresource"`
	Reset       [][]string             `json:"reset"`
	Live        map[string]interface{} `json:"live"`
	Object      map[string]interface{} `json:"object"`
	Manager     string                 `json:"manager"`
	Force       bool                   `json:"force"`
}

type answer struct {
	Object map[string]interface{} `json:"object,omitempty"`
	Error  string                 `json:"error,omitempty"`
	Code   int32                  `json:"code,omitempty"`
	Causes []metav1.StatusCause   `json:"causes,omitempty"`
}

type creater struct{}

func (creater) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	return empty(gvk), nil
}

func empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]interface{}{}}
	object.SetGroupVersionKind(gvk)
	return object
}

type defaulter struct{}

func (defaulter) Default(runtime.Object) {}

// converter converts as a CustomResourceDefinition with the strategy None does. v0 is a version
// that is no longer served.
type converter struct{}

func (converter) Convert(_, _, _ interface{}) error {
	return fmt.Errorf("not needed")
}

func (converter) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	gvk, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()})
	if version, is := to.(schema.GroupVersion); is {
		gvk, ok = version.WithKind(in.GetObjectKind().GroupVersionKind().Kind), true
	}
	if !ok || gvk.Version == "v0" {
		return nil, runtime.NewNotRegisteredErrForTarget("oracle", nil, to)
	}
	out := in.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return out, nil
}

func (converter) ConvertFieldLabel(_ schema.GroupVersionKind, _, _ string) (string, string, error) {
	return "", "", fmt.Errorf("not needed")
}

func respond(schemas []managedfields.TypeConverter, q question) answer {
	gv, err := schema.ParseGroupVersion(q.APIVersion)
	if err != nil {
		return answer{Error: err.Error()}
	}
	gvk := gv.WithKind(q.Kind)
	reset := fieldpath.NewSet()
	for _, names := range q.Reset {
		path := fieldpath.Path{}
		for i := range names {
			path = append(path, fieldpath.PathElement{FieldName: &names[i]})
		}
		reset.Insert(path)
	}
	filters := fieldpath.NewExcludeFilterSetMap(
		map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(q.APIVersion): reset})
	converters := managedfields.NewDeducedTypeConverter()
	if q.Schema >= 0 {
		converters = schemas[q.Schema]
	}
	manager, err := managedfields.NewDefaultCRDFieldManager(
		converters, converter{}, defaulter{}, creater{}, gvk, gv, q.Subresource, filters)
	if err != nil {
		return answer{Error: err.Error()}
	}
	live := empty(gvk)
	if q.Live != nil {
		live.Object = q.Live
	}
	object := &unstructured.Unstructured{Object: q.Object}
	var result runtime.Object
	if q.Op == "apply" {
		result, err = manager.Apply(live, object, q.Manager, q.Force)
	} else {
		result, err = manager.Update(live, object, q.Manager)
	}
	out := answer{}
	if err != nil {
		out.Error = err.Error()
		if status, ok := err.(*errors.StatusError); ok {
			out.Code = status.ErrStatus.Code
			if status.ErrStatus.Details != nil {
				out.Causes = status.ErrStatus.Details.Causes
			}
		}
		return out
	}
	out.Object = result.(*unstructured.Unstructured).Object
	return out
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	decode := json.NewDecoder(in)
	encode := json.NewEncoder(os.Stdout)
	var schemas []managedfields.TypeConverter
	for {
		var raw json.RawMessage
		if err := decode.Decode(&raw); err != nil {
			return
		}
		var q question
		out := answer{}
		if err := json.Unmarshal(raw, &q); err != nil {
			out.Error = "unreadable question: " + err.Error()
		} else if q.Models != nil {
			converters, err := managedfields.NewTypeConverter(q.Models, false)
			if err != nil {
				out.Error = err.Error()
			}
			schemas = append(schemas, converters)
		} else {
			// Integers stay integers, as everywhere in an API server. A question has a kind, so it
			// reads as an object.
			var whole unstructured.Unstructured
			if err := whole.UnmarshalJSON(raw); err == nil {
				q.Live, _ = whole.Object["live"].(map[string]interface{})
				q.Object, _ = whole.Object["object"].(map[string]interface{})
			}
			out = respond(schemas, q)
		}
		if err := encode.Encode(out); err != nil {
			return
		}
	}
}
