// Program pattern-oracle answers which of a set of patterns Quamina finds in a document, at the
// version that Tinkerbell matches its rule sets with: one JSON question per line on standard input,
// one JSON answer per line on standard output.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"quamina.net/go/quamina"
)

// lineMax is the longest question, in bytes.
const lineMax = 16 * 1024 * 1024

type question struct {
	Patterns []string        `json:"patterns"`
	Document json.RawMessage `json:"document"`
}

// answer has the places of the patterns that fit, or which of them is refused.
type answer struct {
	Fits    []int  `json:"fits"`
	Refused *int   `json:"refused,omitempty"`
	Error   string `json:"error,omitempty"`
}

// add is AddPattern that answers a panic as an error.
func add(q *quamina.Quamina, at int, pattern string) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	return q.AddPattern(at, pattern)
}

func answerTo(asked question) (answered answer) {
	answered.Fits = []int{}
	q, err := quamina.New()
	if err != nil {
		return answer{Error: err.Error()}
	}
	for at, pattern := range asked.Patterns {
		if err := add(q, at, pattern); err != nil {
			return answer{Fits: []int{}, Refused: &at, Error: err.Error()}
		}
	}
	found, err := q.MatchesForEvent(asked.Document)
	if err != nil {
		return answer{Fits: []int{}, Error: err.Error()}
	}
	for _, at := range found {
		answered.Fits = append(answered.Fits, at.(int))
	}
	sort.Ints(answered.Fits)
	return answered
}

func main() {
	questions := bufio.NewScanner(os.Stdin)
	questions.Buffer(make([]byte, 0, 64*1024), lineMax)
	answers := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(answers)
	for questions.Scan() {
		var asked question
		if err := json.Unmarshal(questions.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, "pattern-oracle:", err)
			os.Exit(1)
		}
		if err := encoder.Encode(answerTo(asked)); err != nil {
			fmt.Fprintln(os.Stderr, "pattern-oracle:", err)
			os.Exit(1)
		}
		answers.Flush()
	}
}
