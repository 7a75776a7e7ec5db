package export

import (
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Request is an export that one program asks another one for: the page's asks the one that
// it loads when it is needed. The reply's Bytes are the file.
type Request struct {
	Form      string // of Forms
	Title     string // the trace's name
	Hierarchy hierarchy.Hierarchy
	Profile   []byte // encoded
}

// Form is a file that can be asked for.
type Form struct {
	Name   string
	Title  string // for people
	Ending string // of the file's name
	Media  string // its media type
	Sites  bool   // it is about places in the code, and about nothing else
}

// Forms lists those that a request can have.
func Forms() []Form {
	return []Form{
		{"html", "report", ".html", "text/html", false},
		{"json", "all tables", ".json", "application/json", false},
		{"pprof", "pprof", ".pb", "application/octet-stream", true},
		{"callgrind", "callgrind", ".callgrind", "text/plain", true},
		{"folded", "folded stacks", ".folded", "text/plain", true},
	}
}

// fields are those that are asked in words; machine are the lines of the hierarchy.
func (r *Request) fields(machine *[]string) func(*answers.Fields) {
	return func(f *answers.Fields) {
		f.Text("form", &r.Form)
		f.Text("title", &r.Title)
		f.Texts("machine", machine)
	}
}

// Question returns the request as it is asked; its subject is the profile.
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

// Answer gives the file that is asked for.
func (r *Request) Answer() ([]byte, error) {
	p, err := profile.Decode(r.Profile)
	if err != nil {
		return nil, err
	}
	x, err := New(ask.NewRun(r.Title, p), r.Title, r.Hierarchy)
	if err != nil {
		return nil, err
	}
	switch r.Form {
	case "html":
		return x.HTML(), nil
	case "json":
		return x.JSON(), nil
	}
	s, err := x.Sheet()
	if err != nil {
		return nil, err
	}
	switch r.Form {
	case "pprof":
		return s.Pprof(), nil
	case "callgrind":
		return s.Callgrind(), nil
	case "folded":
		return s.Folded(s.Main), nil
	}
	return nil, &trace.OptionError{Option: "export", Got: r.Form, Want: "html, json, pprof, callgrind or folded"}
}
