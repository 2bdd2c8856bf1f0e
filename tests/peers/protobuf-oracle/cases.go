package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// One object in both forms.
type encoded struct {
	Protobuf string          `json:"protobuf"`
	JSON     json.RawMessage `json:"json"`
}

// Maximum depth of random objects: pods are deep, and schemas can contain schemas without end.
const maxDepth = 14

// Years 1 to 9999, the range of times in JSON.
const (
	firstSecond = -62135596800
	seconds     = 253402300799 - firstSecond
)

// Writes `count` random objects of every kind, one in a line.
func writeCases(seed, count string) error {
	seeded, err := strconv.ParseInt(seed, 10, 64)
	if err != nil {
		return err
	}
	wanted, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	all := kinds()
	serializer := protobuf.NewSerializer(all, all)
	filler := randfill.NewWithSeed(seeded).NilChance(0.5).NumElements(0, 2).
		MaxDepth(maxDepth).Funcs(fillers()...)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	lines := json.NewEncoder(out)
	for _, kind := range sorted(all) {
		for range wanted {
			object, err := all.New(kind)
			if err != nil {
				return err
			}
			filler.Fill(object)
			object.GetObjectKind().SetGroupVersionKind(kind)
			line, err := encode(serializer, kind, object)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			if err := lines.Encode(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// Writes, for each input line of base64, the JSON of the object in it.
func decodeLines() error {
	all := kinds()
	serializer := protobuf.NewSerializer(all, all)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		body, err := base64.StdEncoding.DecodeString(lines.Text())
		if err != nil {
			return err
		}
		text, err := decode(serializer, body)
		if err != nil {
			text, _ = json.Marshal("error: " + err.Error())
		}
		fmt.Fprintln(out, string(text))
	}
	return lines.Err()
}

func sorted(all *runtime.Scheme) []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	for kind := range all.AllKnownTypes() {
		found = append(found, kind)
	}
	sort.Slice(found, func(a, b int) bool { return found[a].String() < found[b].String() })
	return found
}

func encode(
	serializer *protobuf.Serializer, kind schema.GroupVersionKind, object runtime.Object,
) (encoded, error) {
	var body strings.Builder
	if err := serializer.Encode(object, &body); err != nil {
		return encoded{}, err
	}
	// The object as a server sees it after decoding.
	text, err := decode(serializer, []byte(body.String()))
	if err != nil {
		return encoded{}, err
	}
	return encoded{base64.StdEncoding.EncodeToString([]byte(body.String())), text}, nil
}

func decode(serializer *protobuf.Serializer, body []byte) (json.RawMessage, error) {
	object, kind, err := serializer.Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	return json.Marshal(object)
}

func fillers() []any {
	return []any{
		func(into *string, c randfill.Continue) {
			*into = c.String(c.Intn(12))
		},
		// Few enough digits that every reader of JSON reads the same number.
		func(into *float64, c randfill.Continue) {
			*into = float64(c.Intn(1<<20)-1<<19) / 1024
		},
		func(*meta.TypeMeta, randfill.Continue) {},
		func(into *meta.Time, c randfill.Continue) {
			if c.Intn(5) > 0 {
				*into = meta.Unix(randomSecond(c.Rand), c.Int63n(1e9))
			}
		},
		func(into *meta.MicroTime, c randfill.Continue) {
			if c.Intn(5) > 0 {
				*into = meta.MicroTime{Time: time.Unix(randomSecond(c.Rand), c.Int63n(1e9))}
			}
		},
		func(into *meta.Duration, c randfill.Continue) {
			into.Duration = time.Duration(c.Int63() >> c.Intn(63))
			if c.Bool() {
				into.Duration = -into.Duration
			}
		},
		func(into *resource.Quantity, c randfill.Continue) {
			// Only canonical forms, as clients write them: the box keeps a form that is not
			// canonical.
			*into = *resource.NewQuantity(c.Int63n(1<<40), resource.DecimalSI)
			if c.Bool() {
				*into = *resource.NewQuantity(c.Int63n(1<<40)<<10|1<<10, resource.BinarySI)
			}
			if c.Bool() {
				*into = *resource.NewMilliQuantity(c.Int63n(1<<40), resource.DecimalSI)
			}
		},
		func(into *intstr.IntOrString, c randfill.Continue) {
			if *into = intstr.FromInt32(int32(c.Uint32())); c.Bool() {
				*into = intstr.FromString(c.String(0))
			}
		},
		func(into *runtime.RawExtension, c randfill.Continue) { into.Raw = randomJSON(c) },
		func(into *meta.FieldsV1, c randfill.Continue) { into.Raw = randomJSON(c) },
		func(into *apiextensions.JSON, c randfill.Continue) { into.Raw = randomJSON(c) },
		func(into *apiextensions.JSONSchemaPropsOrBool, c randfill.Continue) {
			if c.FillNoCustom(into); into.Schema != nil {
				into.Allows = true
			}
		},
		func(into *apiextensions.JSONSchemaPropsOrArray, c randfill.Continue) {
			if c.FillNoCustom(into); into.Schema != nil {
				into.JSONSchemas = nil
			}
		},
		func(into *apiextensions.JSONSchemaPropsOrStringArray, c randfill.Continue) {
			if c.FillNoCustom(into); into.Schema != nil {
				into.Property = nil
			}
		},
	}
}

func randomSecond(source *rand.Rand) int64 {
	return firstSecond + source.Int63n(seconds)
}

func randomJSON(c randfill.Continue) []byte {
	value := map[string]any{"text": c.String(0), "number": c.Int63(), "list": []any{true, nil}}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
