package export

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Request is a question of the page to the program that exports. The reply's Bytes are the file.
type Request struct {
	Form      string // of Forms
	Title     string // the trace's name
	Hierarchy hierarchy.Hierarchy
	Profile   []byte // encoded
}

// Form is a format of exported files.
type Form struct {
	Name   string
	Title  string // for people
	Ending string // of the file's name
	Media  string // media type
	Sites  bool   // it contains source locations only
}

// Forms lists the formats.
func Forms() []Form {
	return []Form{
		{"html", "report", ".html", "text/html", false},
		{"json", "all tables", ".json", "application/json", false},
		{"pprof", "pprof", ".pb", "application/octet-stream", true},
		{"callgrind", "callgrind", ".callgrind", "text/plain", true},
		{"folded", "folded stacks", ".folded", "text/plain", true},
	}
}

// fields describes the words of the request; machine are the lines of the hierarchy.
func (r *Request) fields(machine *[]string) func(*answers.Fields) {
	return func(f *answers.Fields) {
		f.Text("form", &r.Form)
		f.Text("title", &r.Title)
		f.Texts("machine", machine)
	}
}

// Question returns the request as a question about the profile.
func (r *Request) Question() answers.Question {
	lines := r.Hierarchy.Lines()
	return answers.Question{Of: answers.OfExport, Words: answers.WordsOf(r.fields(&lines))}
}

// ReadRequest reads the words of a question about a profile. The error is a
// [*trace.OptionError].
func ReadRequest(words []string, encoded []byte) (*Request, error) {
	r := &Request{Profile: encoded}
	var lines []string
	err := answers.ReadWords(words, r.fields(&lines))
	for _, line := range lines {
		if err == nil {
			err = r.Hierarchy.Add(line)
		}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Answer returns the file.
func (r *Request) Answer() ([]byte, error) {
	p, err := profile.Decode(r.Profile)
	if err != nil {
		return nil, err
	}
	x, err := New(ask.NewRun(r.Title, p), r.Title, r.Hierarchy)
	if err != nil {
		return nil, err
	}
	return x.File(r.Form, "")
}

// File returns the file of a form. event is the event of folded stacks; "": the main one.
func (x *Export) File(form, event string) ([]byte, error) {
	switch form {
	case "html":
		return x.HTML(), nil
	case "json":
		return x.JSON(), nil
	}
	s, err := x.Sheet()
	if err != nil {
		return nil, err
	}
	switch form {
	case "pprof":
		return s.Pprof(), nil
	case "callgrind":
		return s.Callgrind(), nil
	case "folded":
		at := s.Main
		if event != "" {
			at = s.Event(event)
		}
		if at < 0 {
			return nil, &EventError{Got: event, Have: s.Events}
		}
		return s.Folded(at), nil
	}
	return nil, &trace.OptionError{Option: "export", Got: form, Want: "html, json, pprof, callgrind or folded"}
}

// EventError reports an unknown event.
type EventError struct {
	Got  string
	Have []Event
}

func (e *EventError) Error() string {
	var have []string
	for _, event := range e.Have {
		have = append(have, event.Key)
	}
	return "event " + strconv.Quote(e.Got) + ", want one of " + strings.Join(have, ", ")
}
