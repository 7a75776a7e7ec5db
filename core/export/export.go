package export

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Export contains a run to export and, optionally, predictions for a cache hierarchy.
type Export struct {
	Run      *ask.Run
	Title    string   // the trace's name
	Warnings []string // warnings that apply to all output

	asked  *Question                 // nil if the export has no hierarchy
	levels []attribution.Attribution // attributed misses of each level
}

// Question contains a hierarchy and the prediction for it.
type Question struct {
	Hierarchy hierarchy.Hierarchy
	Answer    hierarchy.ByCore
}

// New prepares the export of a run. If h has levels, the export contains predictions for h. The
// error message is intended for the user.
func New(run *ask.Run, title string, h hierarchy.Hierarchy) (*Export, error) {
	x := &Export{Run: run, Title: title, Warnings: slices.Clone(run.Warnings)}
	if len(h.Levels) == 0 || len(run.Profile.Locality) == 0 {
		return x, nil
	}
	predicted, warnings, err := run.Asker().Predict(h, nil)
	if err == nil && x.Run.Ranker() != nil {
		x.levels, warnings, err = x.Run.Ranker().Attribute(h)
	}
	if err != nil {
		return nil, err
	}
	said := hierarchy.ProfileDoubts(run.Profile)
	for _, w := range warnings {
		if !slices.Contains(said, w) {
			x.Warnings = append(x.Warnings, string(w))
		}
	}
	x.Warnings = append(x.Warnings, answers.Estimated(x.levels)...)
	if h.About != "" {
		x.Warnings = append(x.Warnings, h.Name+": "+h.About)
	}
	x.asked = &Question{Hierarchy: h, Answer: predicted}
	return x, nil
}

// Facts returns facts about the input. The facts include the profile's digest, which identifies the
// profile even years later.
func (x *Export) Facts() []report.Fact {
	p := x.Run.Profile
	digest := p.Digest()
	facts := append(x.Run.Facts(0), report.Fact{Key: "digest", Label: "digest", Value: report.TextOf(hex.EncodeToString(digest[:]))})
	if x.asked != nil {
		facts = append(facts, answers.ThreadFacts(p, x.asked.Hierarchy)...)
	}
	return facts
}

// Tables returns all tables of the run, each under a unique key. If a table is about one line size,
// its key ends in the line size, as in curve_64. If a verb has several tables, their keys begin
// with the verb, as in threads_cores. Empty tables are omitted. The returned warnings begin with
// the warnings of the export.
func (x *Export) Tables() (tables []report.Table, warnings []string) {
	p := x.Run.Profile
	summarised := false
	for _, v := range verbs() {
		if !v.First && !summarised {
			if summarised = true; len(p.Locality) > 0 {
				tables = append(tables, answers.Locality(p))
			}
			tables = append(tables, answers.Kinds(p))
		}
		if v.Missing(p) == "" && (v.Machine != ask.AllCaches || x.asked != nil) {
			some, doubts := x.tablesOf(v)
			tables, warnings = append(tables, some...), append(warnings, doubts...)
		}
	}
	seen := map[string]bool{}
	warnings = slices.DeleteFunc(slices.Concat(x.Warnings, warnings), func(text string) bool {
		again := seen[text]
		seen[text] = true
		return again
	})
	return slices.DeleteFunc(tables, func(t report.Table) bool { return len(t.Rows) == 0 }), warnings
}

// verbs returns the verbs in the order in which their answers are exported.
func verbs() []*ask.Verb {
	list := ask.Verbs()
	return slices.Concat(
		slices.DeleteFunc(slices.Clone(list), func(v *ask.Verb) bool { return !v.First }),
		slices.DeleteFunc(list, func(v *ask.Verb) bool { return v.First }))
}

// tablesOf returns the tables of one verb, with its warnings.
func (x *Export) tablesOf(v *ask.Verb) (tables []report.Table, warnings []string) {
	q := ask.New(v)
	add := func(q ask.Question, key func(string) string) {
		d, err := x.answerTo(q)
		if err != nil {
			return // the verb has no answer, for example because the profile does not contain the line size of a cache
		}
		warnings = append(warnings, d.Warnings...)
		for _, t := range d.Tables {
			t.Key = key(t.Key)
			tables = append(tables, t)
		}
	}
	asIs := func(key string) string { return key }
	switch v.Name {
	case "histogram", "curve", "sets", "windows":
		for i := range x.Run.Profile.Locality {
			bytes := strconv.Itoa(int(x.Run.Profile.Locality[i].LineBytes))
			add(q.With("line", bytes), func(key string) string { return key + "_" + bytes })
		}
	case "what-if":
		if len(x.asked.Answer.Cores) > 0 {
			q = q.With("by", "core")
		}
		add(q, asIs)
	case "sites":
		if x.asked != nil {
			add(q.With("by", string(attribution.Site)), asIs)
			add(q.With("by", string(attribution.Object)), func(string) string { return "objects" })
		}
	case "counters":
		add(q, func(key string) string {
			if key == "memory" {
				// the key "memory" belongs to the table of the hierarchy's memory
				return "memory_usage"
			}
			return key
		})
		add(q.With("by", "function"), asIs)
		add(q.With("by", "block"), asIs)
	default:
		add(q, func(key string) string { return v.Name + "_" + key })
	}
	return tables, warnings
}

// answerTo returns the answer to a question. If the verb accepts a hierarchy, the question is about
// the export's hierarchy.
func (x *Export) answerTo(q ask.Question) (*report.Document, error) {
	if x.asked == nil || q.Verb.Machine == ask.NoCaches {
		return x.Run.Answer(q)
	}
	q.Machine = x.asked.Hierarchy
	d, err := x.Run.Answer(q)
	// the verb has no answer for these caches, but may have tables that do not depend on caches
	if err != nil && q.Verb.Machine == ask.SomeCaches {
		q.Machine = hierarchy.Hierarchy{}
		return x.Run.Answer(q)
	}
	return d, err
}

// JSON returns all tables in one JSON object.
func (x *Export) JSON() []byte {
	d := &report.Document{Schema: "stackglass.export", Version: 1, Input: x.Facts()}
	d.Tables, d.Warnings = x.Tables()
	return d.JSON()
}

// reportedPlaces is the maximum number of source lines, and of data objects, that a report lists
// individually.
const reportedPlaces = 25

// HTML returns the report as an HTML file.
func (x *Export) HTML() []byte {
	r := &Report{Title: x.Title, Facts: x.Facts(), Warnings: x.Warnings, Profile: x.Run.Profile, Asked: x.asked}
	for _, p := range []struct {
		by    attribution.By
		title string
	}{{attribution.Line, "Source lines, in descending order of first-level misses"}, {attribution.Object, "Data, in descending order of first-level misses"}} {
		if len(x.levels) == 0 || p.by == attribution.Object && len(x.Run.Profile.Sites.Data) == 0 {
			continue
		}
		s := answers.Sites{Profile: x.Run.Profile, Ranker: x.Run.Ranker(), Levels: x.levels, By: p.by, Name: x.Run.Readable}
		t := s.Narrow(s.Table(s.Order("", 0), reportedPlaces), "")
		t.Title = p.title
		r.Places = append(r.Places, t)
	}
	for _, v := range verbs() {
		if !hasSection[v.Name] && v.Missing(x.Run.Profile) == "" {
			list := &r.Sections
			if v.First {
				list = &r.First
			}
			*list = append(*list, x.sectionFor(v))
		}
	}
	return HTML(r)
}

// hasSection contains the verbs whose answers have a special section in the report.
var hasSection = map[string]bool{"histogram": true, "curve": true, "sets": true, "windows": true, "what-if": true, "sites": true, "counters": true}

// sectionFor returns a section of the report with a verb's answer in human-readable form.
func (x *Export) sectionFor(v *ask.Verb) Section {
	q := ask.New(v)
	q.Brief = true
	d, err := x.answerTo(q)
	if err != nil {
		return Section{Title: v.Title, Notes: []string{err.Error()}}
	}
	for i := range d.Tables { // remove hints that apply only to the command line
		d.Tables[i].Title, _, _ = strings.Cut(d.Tables[i].Title, " (all columns")
	}
	said := len(x.Run.Warnings)
	tables := d.Tables
	if d.Prose != nil {
		tables = d.Prose
	}
	return Section{Title: v.Title, Tables: tables, Notes: d.Warnings[said:]}
}

// Sheet returns the counts of events by source location, for formats that contain only such counts.
func (x *Export) Sheet() (*Sheet, error) {
	if x.Run.Ranker() == nil {
		return nil, &trace.OptionError{Option: "export", Got: x.Title, Want: "a trace that contains source locations (recorded by stackglass cc or stackglass trace), or a profile of such a trace made with --analyses sites"}
	}
	return NewSheet(&Places{
		Command: x.Title, Profile: x.Run.Profile, Levels: x.levels, Name: x.Run.Readable,
		Notes: slices.Concat(x.Warnings, answers.MissingSites(x.Run.Profile)),
	}), nil
}

// Request is a request for an exported file. The page sends the request to the page's second
// program. The field Bytes of the reply contains the file.
type Request struct {
	Form      string // name of the format (see Forms)
	Title     string // the trace's name
	Hierarchy hierarchy.Hierarchy
	Profile   []byte // the profile, encoded
}

// Form is a format of exported files.
type Form struct {
	Name   string
	Title  string // human-readable title
	Ending string // extension of the file name
	Media  string // media type of the file
	Sites  bool   // whether the format contains only counts by source location
}

// Forms returns the formats.
func Forms() []Form { return forms }

var forms = []Form{
	{"html", "report", ".html", "text/html", false},
	{"json", "all tables", ".json", "application/json", false},
	{"pprof", "pprof", ".pb", "application/octet-stream", true},
	{"callgrind", "callgrind", ".callgrind", "text/plain", true},
	{"folded", "folded stacks", ".folded", "text/plain", true},
	{"speedscope", "speedscope", ".speedscope.json", "application/json", true},
}

// fields describes how the fields of the request are encoded as words. The parameter "machine"
// points to the lines that describe the hierarchy.
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

// ReadRequest decodes a request from the words of a question and from an encoded profile. The error
// is a [*trace.OptionError].
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

// Answer returns the content of the requested file. The function readable demangles function names.
func (r *Request) Answer(readable func(string) string) ([]byte, error) {
	p, err := profile.Decode(r.Profile)
	if err != nil {
		return nil, err
	}
	run := ask.NewRun(r.Title, p)
	run.Readable = readable
	x, err := New(run, r.Title, r.Hierarchy)
	if err != nil {
		return nil, err
	}
	return x.File(r.Form, "")
}

// File returns the content of a file in the given format. The parameter event selects the event
// that folded stacks count; "" selects the main event.
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
	case "speedscope":
		return s.Speedscope(), nil
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
	return nil, &trace.OptionError{Option: "export", Got: form, Want: "html, json, pprof, callgrind, folded or speedscope"}
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
	return "unknown event " + strconv.Quote(e.Got) + ", want one of " + strings.Join(have, ", ")
}
