package export_test

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// newRequest returns a request about a small matrix multiplication.
func newRequest(t testing.TB, form string) *export.Request {
	t.Helper()
	p, steps := tracetest.Multiplication(6)
	runner, err := analysis.NewRunner(analysis.Spec{SetNumbers: stack.AllSetNumbers}, tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 0))
	for err == nil {
		err = runner.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return &export.Request{Form: form, Title: "a product", Profile: runner.Profile(profile.State{}).Encode(),
		Hierarchy: hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 1 << 10, Ways: 2, LineBytes: 64}},
			Memory: hierarchy.Memory{LatencyCycles: 200}, ClockGHz: 3}}
}

func TestRequestRoundTrip(t *testing.T) {
	r := newRequest(t, "html")
	r.Title = "two\nlines = 3"
	again, err := export.ReadRequest(r.Question().Words, r.Profile)
	if err != nil || !reflect.DeepEqual(r, again) {
		t.Errorf("ReadRequest of the request %+v = %+v, %v", r, again, err)
	}
	for _, bad := range []string{"machine=L1=none", "nonsense"} {
		if _, err := export.ReadRequest([]string{"form=html", bad}, nil); err == nil {
			t.Errorf("ReadRequest accepts %s", bad)
		}
	}
}

func TestEveryFormatIsExported(t *testing.T) {
	begins := map[string]string{"html": "<!DOCTYPE html>", "json": "{", "callgrind": "# callgrind format"}
	for _, form := range export.Forms() {
		content, err := newRequest(t, form.Name).Answer(nil)
		if err != nil {
			t.Errorf("%s: %v", form.Name, err)
		}
		if len(content) < 50 || !bytes.HasPrefix(content, []byte(begins[form.Name])) {
			t.Errorf("%s: %.200q", form.Name, content)
		}
		if form.Name == "json" && !json.Valid(content) {
			t.Errorf("the JSON file is invalid: %s", content)
		}
	}
	if _, err := newRequest(t, "xls").Answer(nil); err == nil || !strings.Contains(err.Error(), "callgrind") {
		t.Errorf("Answer for an unknown form = %v, want an error", err)
	}
	r := newRequest(t, "pprof")
	p, err := profile.Decode(r.Profile)
	if err != nil {
		t.Fatal(err)
	}
	p.Sites, p.Timeline = nil, nil
	r.Profile = p.Encode()
	if _, err := r.Answer(nil); err == nil || !strings.Contains(err.Error(), "source locations") {
		t.Errorf("Answer for a profile without sites = %v, want an error about source locations", err)
	}
}
