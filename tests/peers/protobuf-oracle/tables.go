package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Types whose JSON is not an object of their fields. The box has special code for each of these
// types.
var special = map[string]string{
	"meta.v1.Time":                                  "time",
	"meta.v1.MicroTime":                             "microtime",
	"meta.v1.Duration":                              "duration",
	"meta.v1.FieldsV1":                              "raw",
	"resource.Quantity":                             "quantity",
	"intstr.IntOrString":                            "intorstring",
	"runtime.RawExtension":                          "rawextension",
	"apiextensions.v1.JSON":                         "json",
	"apiextensions.v1.JSONSchemaPropsOrBool":        "schemaorbool",
	"apiextensions.v1.JSONSchemaPropsOrArray":       "schemaorarray",
	"apiextensions.v1.JSONSchemaPropsOrStringArray": "schemaorstrings",
}

// Parts of a definition in the published specification, without its descriptions.
type definition struct {
	Required   []string                   `json:"required"`
	Properties map[string]json.RawMessage `json:"properties"`
	MapType    string                     `json:"x-kubernetes-map-type"`
}

type property struct {
	Default  json.RawMessage `json:"default"`
	ListType string          `json:"x-kubernetes-list-type"`
	Keys     []string        `json:"x-kubernetes-list-map-keys"`
	MapType  string          `json:"x-kubernetes-map-type"`
	Strategy string          `json:"x-kubernetes-patch-strategy"`
	MergeKey string          `json:"x-kubernetes-patch-merge-key"`
}

type tables struct {
	spec map[string]definition
	// Lines of the table of a type, by the short name of the type.
	lines map[string][]string
	enums enums
}

// Writes the tables of the types of all kinds, one file for each package.
func writeTables(specification, folder string) error {
	spec, err := readSpecification(specification)
	if err != nil {
		return err
	}
	out := tables{spec, map[string][]string{}, enums{}}
	files := map[string][]string{}
	for kind, goType := range kinds().AllKnownTypes() {
		out.visit(goType, "")
		name := short(goType)
		version := kind.GroupVersion().String()
		file := packageOf(name)
		files[file] = append(files[file], fmt.Sprintf("kind %s %s %s", version, kind.Kind, name))
	}
	for name, lines := range out.lines {
		file := packageOf(name)
		files[file] = append(files[file], strings.Join(lines, "\n"))
	}
	for file, parts := range files {
		sort.Strings(parts)
		if err := writeFile(filepath.Join(folder, file+".types"), parts); err != nil {
			return err
		}
	}
	return nil
}

// Reads the definitions of every OpenAPI v3 document in a folder.
func readSpecification(folder string) (map[string]definition, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no specification in %s: %w", folder, err)
	}
	all := map[string]definition{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var read struct {
			Components struct {
				Schemas map[string]definition `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(text, &read); err != nil {
			return nil, err
		}
		maps.Copy(all, read.Components.Schemas)
	}
	return all, nil
}

func writeFile(path string, parts []string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	for _, part := range parts {
		fmt.Fprintln(out, part)
	}
	return out.Flush()
}

// Returns the name of a type in the tables: `core.v1.Secret`.
func short(goType reflect.Type) string {
	path := goType.PkgPath()
	for _, prefix := range []string{
		"k8s.io/apimachinery/pkg/apis/", "k8s.io/apimachinery/pkg/api/",
		"k8s.io/apimachinery/pkg/util/", "k8s.io/apimachinery/pkg/", "k8s.io/api/",
		"k8s.io/apiextensions-apiserver/pkg/apis/", "k8s.io/kube-aggregator/pkg/apis/",
	} {
		if rest, found := strings.CutPrefix(path, prefix); found {
			return strings.ReplaceAll(rest, "/", ".") + "." + goType.Name()
		}
	}
	panic("no short name for " + path)
}

// Returns the name of a type in the published specification.
func long(goType reflect.Type) string {
	host, rest, _ := strings.Cut(goType.PkgPath(), "/")
	parts := strings.Split(host, ".")
	for left, right := 0, len(parts)-1; left < right; left, right = left+1, right-1 {
		parts[left], parts[right] = parts[right], parts[left]
	}
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + goType.Name()
}

func packageOf(name string) string {
	return name[:strings.LastIndex(name, ".")]
}

// Returns true for a type that is a protobuf message of its own. A slice type that is not a message
// is a repeated field.
func isMessage(goType reflect.Type) bool {
	_, found := reflect.PointerTo(goType).MethodByName("Unmarshal")
	return found
}

// Adds a struct and the types of its fields to the tables. `inside` names the definition that
// contains a struct without a definition of its own.
func (t *tables) visit(goType reflect.Type, inside string) {
	name := short(goType)
	if _, known := t.lines[name]; known || special[name] != "" {
		return
	}
	definedAs := long(goType)
	defined, ok := t.spec[definedAs]
	if !ok {
		definedAs, defined = inside, t.spec[inside]
	}
	head := "type " + name
	if defined.MapType != "" && ok {
		head += " mapType=" + defined.MapType
	}
	t.lines[name] = []string{head}
	if goType.Kind() == reflect.Slice {
		items := "  1 items " + t.typeOf(goType.Elem(), "[]", definedAs)
		t.lines[name] = []string{"slice " + name, items}
		return
	}
	type numbered struct {
		number int
		line   string
	}
	var fields []numbered
	for i := range goType.NumField() {
		field := goType.Field(i)
		tag := field.Tag.Get("protobuf")
		if tag == "" || tag == "-" {
			if field.Name != "TypeMeta" {
				fmt.Fprintf(os.Stderr, "left out, not in protobuf: %s.%s\n", name, field.Name)
			}
			continue
		}
		number, err := strconv.Atoi(strings.Split(tag, ",")[1])
		if err != nil {
			panic(err)
		}
		fields = append(fields, numbered{number, t.field(field, number, definedAs, defined)})
	}
	sort.Slice(fields, func(a, b int) bool { return fields[a].number < fields[b].number })
	for _, field := range fields {
		t.lines[name] = append(t.lines[name], field.line)
	}
}

func (t *tables) field(
	field reflect.StructField, number int, definedAs string, defined definition,
) string {
	jsonTag := strings.Split(field.Tag.Get("json"), ",")
	jsonName := jsonTag[0]
	var flags []string
	for _, option := range jsonTag[1:] {
		if option != "" {
			flags = append(flags, option)
		}
	}
	if jsonName == "" {
		jsonName = "-"
	}
	fieldType := field.Type
	if fieldType.Kind() == reflect.Pointer {
		fieldType = fieldType.Elem()
		flags = append(flags, "ptr")
	}
	for _, required := range defined.Required {
		if required == jsonName {
			flags = append(flags, "required")
		}
	}
	var facts property
	if text := defined.Properties[jsonName]; text != nil {
		if err := json.Unmarshal(text, &facts); err != nil {
			panic(err)
		}
	}
	flag := func(name, value string) {
		if value != "" {
			flags = append(flags, name+"="+value)
		}
	}
	flag("listType", facts.ListType)
	flag("keys", strings.Join(facts.Keys, ","))
	flag("mapType", facts.MapType)
	flag("strategy", facts.Strategy)
	flag("mergeKey", facts.MergeKey)
	values := fieldType
	for values.Kind() == reflect.Slice || values.Kind() == reflect.Map {
		values = values.Elem()
	}
	flag("enum", strings.Join(t.enums.of(values), ","))
	text := string(facts.Default)
	zero := text == "{}" || text == `""` || text == "0" || text == "false"
	// An empty default of a field that is always present is left out.
	if !zero || text != "{}" && (slices.Contains(flags, "omitempty") || slices.Contains(flags, "ptr")) {
		flag("default", strings.ReplaceAll(text, " ", "\\u0020"))
	}
	spelled := t.typeOf(fieldType, "", definedAs)
	return strings.TrimRight(
		fmt.Sprintf("  %d %s %s %s", number, jsonName, spelled, strings.Join(flags, " ")), " ")
}

// Returns the spelling of a type in the tables: a scalar, or `@` and the name of a message. `[]`
// stands before the items of a list, `{}` before the values of a map with string keys.
func (t *tables) typeOf(goType reflect.Type, before, definedAs string) string {
	if goType.Kind() == reflect.Pointer {
		return t.typeOf(goType.Elem(), before, definedAs)
	}
	switch goType.Kind() {
	case reflect.Struct:
		name := short(goType)
		if spelled := special[name]; spelled != "" {
			if strings.HasPrefix(spelled, "schemaor") {
				t.visitSchema(goType)
			}
			return before + spelled
		}
		if _, custom := reflect.PointerTo(goType).MethodByName("MarshalJSON"); custom {
			panic(name + " has a JSON form of its own")
		}
		t.visit(goType, definedAs)
		return before + "@" + name
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			return before + "bytes"
		}
		if goType.Name() != "" && isMessage(goType) {
			t.visit(goType, definedAs)
			return before + "@" + short(goType)
		}
		return t.typeOf(goType.Elem(), before+"[]", definedAs)
	case reflect.Map:
		if goType.Key().Kind() != reflect.String {
			panic("a map of other than strings")
		}
		return t.typeOf(goType.Elem(), before+"{}", definedAs)
	case reflect.Bool, reflect.String, reflect.Int32, reflect.Int64, reflect.Float64:
		return before + goType.Kind().String()
	}
	panic("no spelling for " + goType.String())
}

// Adds the schema of a type that is either a schema or another value, such as a list of strings.
func (t *tables) visitSchema(choice reflect.Type) {
	field, _ := choice.FieldByName("Schema")
	t.visit(field.Type.Elem(), "")
}
