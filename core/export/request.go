package export

import (
	"bytes"
	"strings"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Request is an export that one program asks another one for: the page's asks the
// one that it loads when it is needed. As bytes it is lines, a blank one, and the
// profile:
//
//	pprof
//	matmul
//	L1=32KiB,8
//	L2=256KiB,8
//
//	...
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

// Encode writes the request as bytes.
func (r *Request) Encode() []byte {
	oneLine := strings.NewReplacer("\n", " ", "\r", " ")
	lines := append([]string{r.Form, oneLine.Replace(r.Title)}, r.Hierarchy.Lines()...)
	return append([]byte(strings.Join(lines, "\n")+"\n\n"), r.Profile...)
}

// ReadRequest reads what Encode wrote. The error is a [*trace.OptionError].
func ReadRequest(b []byte) (*Request, error) {
	head, body, ok := bytes.Cut(b, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	if !ok || len(lines) < 2 {
		return nil, &trace.OptionError{Option: "export", Got: "a request without form, title and profile", Want: "what the same version of this program writes"}
	}
	r := &Request{Form: lines[0], Title: lines[1], Profile: body}
	for _, line := range lines[2:] {
		if err := r.Hierarchy.Add(line); err != nil {
			return nil, err
		}
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
