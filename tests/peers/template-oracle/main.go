// Program template-oracle renders templates with Go's own text/template and the functions that
// Tinkerbell adds: one JSON question per line on standard input, one JSON answer per line on
// standard output.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

// outputMax is Tinkerbell's limit of a rendered template, in bytes.
const outputMax = 256 * 1024

// lineMax is the longest question, in bytes.
const lineMax = 16 * 1024 * 1024

type question struct {
	Template string      `json:"template"`
	Data     interface{} `json:"data"`
}

type answer struct {
	Output string `json:"output"`
	Error  string `json:"error,omitempty"`
	// Binary is true when the output is not valid UTF-8 and cannot be compared as text.
	Binary bool `json:"binary,omitempty"`
}

// own has Tinkerbell's four functions, written after their documentation: the package that has them
// is internal to its module.
var own = template.FuncMap{
	"formatPartition": func(device string, number int) string {
		switch {
		case strings.HasPrefix(device, "/dev/disk/"):
			return device + "-part" + strconv.Itoa(number)
		case device != "" && strings.ContainsRune("0123456789", rune(device[len(device)-1])):
			return device + "p" + strconv.Itoa(number)
		default:
			return device + strconv.Itoa(number)
		}
	},
	"netmaskToPrefixLength": func(mask string) (string, error) {
		address := net.ParseIP(mask).To4()
		if address == nil {
			return "", errors.New("no IPv4 netmask")
		}
		ones, _ := net.IPMask(address).Size()
		return strconv.Itoa(ones), nil
	},
	"toYaml": func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	},
	"fromYaml": func(text string) (interface{}, error) {
		if text == "" {
			return nil, errors.New("no YAML")
		}
		var value interface{}
		err := yaml.Unmarshal([]byte(text), &value)
		return value, err
	},
}

// limited is an output that refuses to grow beyond outputMax.
type limited struct{ strings.Builder }

func (output *limited) Write(part []byte) (int, error) {
	if output.Len()+len(part) > outputMax {
		return 0, errors.New("too much output")
	}
	return output.Builder.Write(part)
}

func render(asked question) (string, error) {
	functions := sprig.HermeticTxtFuncMap()
	for name, function := range own {
		functions[name] = function
	}
	parsed, err := template.New("workflow document").Option("missingkey=error").Funcs(functions).Parse(asked.Template)
	if err != nil {
		return "", err
	}
	var output limited
	err = parsed.Execute(&output, asked.Data)
	return output.String(), err
}

// integers converts the whole numbers of a value to int64, because Tinkerbell's structs have
// integers.
func integers(value interface{}) interface{} {
	switch value := value.(type) {
	case map[string]interface{}:
		for key := range value {
			value[key] = integers(value[key])
		}
	case []interface{}:
		for at := range value {
			value[at] = integers(value[at])
		}
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	return value
}

func answerTo(asked question) (answered answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			answered = answer{Error: fmt.Sprint("panic: ", panicked)}
		}
	}()
	output, err := render(asked)
	if err != nil {
		return answer{Error: err.Error()}
	}
	if !utf8.ValidString(output) {
		return answer{Binary: true}
	}
	return answer{Output: output}
}

func main() {
	questions := bufio.NewScanner(os.Stdin)
	questions.Buffer(make([]byte, 0, 64*1024), lineMax)
	answers := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(answers)
	encoder.SetEscapeHTML(false)
	for questions.Scan() {
		var asked question
		if err := json.Unmarshal(questions.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, "template-oracle:", err)
			os.Exit(1)
		}
		if data, is := asked.Data.(map[string]interface{}); is {
			if hardware, has := data["Hardware"]; has {
				data["Hardware"] = integers(hardware)
			}
		}
		if err := encoder.Encode(answerTo(asked)); err != nil {
			fmt.Fprintln(os.Stderr, "template-oracle:", err)
			os.Exit(1)
		}
		answers.Flush()
	}
}
