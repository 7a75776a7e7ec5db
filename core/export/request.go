package export

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/ranking"
	"github.com/stackglass/stackglass/core/report"
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
	x := &answer{request: r, profile: p}
	if err := x.ask(); err != nil {
		return nil, err
	}
	switch r.Form {
	case "html":
		return x.html(), nil
	case "json":
		d := &report.Document{Schema: "stackglass.export", Version: 1, Input: x.facts(), Tables: x.tables(), Warnings: x.doubts}
		return d.JSON(), nil
	}
	if x.ranker == nil {
		return nil, &trace.OptionError{Option: "export", Got: r.Form, Want: "a profile that tells places in the code"}
	}
	s := NewSheet(&Places{Command: r.Title, Profile: p, Levels: x.levels, Notes: append(x.doubts, answers.MissingSites(p)...)})
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

// answer is what a request is answered from.
type answer struct {
	request *Request
	profile *profile.Profile
	asked   *Question
	ranker  *ranking.Ranker // nil where the profile tells no places
	levels  []ranking.Attribution
	doubts  []string
}

// ask predicts the hierarchy and says whose the misses are.
func (x *answer) ask() error {
	x.ranker, _ = ranking.New(x.profile)
	h := x.request.Hierarchy
	if len(h.Levels) == 0 || len(x.profile.Locality) == 0 {
		return nil
	}
	predicted, warnings, err := hierarchy.NewCoreAsker(x.profile).Predict(h, nil)
	if err == nil && x.ranker != nil {
		x.levels, warnings, err = x.ranker.Attribute(h)
	}
	if err != nil {
		return err
	}
	for _, w := range warnings {
		x.doubts = append(x.doubts, string(w))
	}
	x.asked = &Question{Hierarchy: h, Answer: predicted}
	return nil
}

func (x *answer) facts() []report.Fact {
	p := x.profile
	digest := p.Digest()
	facts := []report.Fact{
		{Key: "name", Label: "trace", Value: report.TextOf(x.request.Title)},
		{Key: "format", Label: "trace format", Value: report.TextOf(p.Input.Header.Format)},
		{Key: "kinds", Label: "kinds", Value: report.TextOf(p.Input.Kinds.String())},
		{Key: "references", Label: "references", Value: report.Count(p.Totals.AllReferences())},
		{Key: "complete", Label: "complete", Value: report.YesNo(!p.State.Partial)},
		{Key: "digest", Label: "digest", Value: report.TextOf(hex.EncodeToString(digest[:]))},
	}
	if x.asked != nil {
		facts = append(facts, answers.ThreadFacts(p, x.asked.Hierarchy)...)
	}
	return facts
}

// reportedPlaces is how many lines and data objects a report has by themselves.
const reportedPlaces = 25

func (x *answer) html() []byte {
	r := &Report{Title: x.request.Title, Facts: x.facts(), Warnings: x.doubts, Profile: x.profile, Asked: x.asked}
	for _, p := range []struct {
		by    ranking.By
		title string
	}{{ranking.Line, "Lines of source, those first that miss most in the first level"}, {ranking.Object, "Data, the same"}} {
		if t, ok := x.places(p.by, reportedPlaces); ok {
			t.Title = p.title
			r.Places = append(r.Places, t)
		}
	}
	return HTML(r)
}

// tables are all of them.
func (x *answer) tables() []report.Table {
	tables := Tables(x.profile, x.asked)
	for _, by := range []ranking.By{ranking.Site, ranking.Object} {
		if t, ok := x.places(by, math.MaxInt); ok {
			tables = append(tables, t)
		}
	}
	return tables
}

// places ranks sites, lines or data by their misses.
func (x *answer) places(by ranking.By, top int) (t report.Table, ok bool) {
	if len(x.levels) == 0 || by == ranking.Object && len(x.profile.Sites.Data) == 0 {
		return t, false
	}
	s := answers.Sites{Profile: x.profile, Ranker: x.ranker, Levels: x.levels, By: by}
	t = s.Table(top)
	if by == ranking.Object {
		t.Key = "objects"
	}
	if top < math.MaxInt {
		t = s.Narrow(t, "")
	}
	return t, true
}
