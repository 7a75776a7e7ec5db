package ui

import (
	"bytes"
	"html"
	"io"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/vugu/vugu"
	"github.com/vugu/vugu/staticrender"
)

// The function "malicious" returns the encoded profile of a program in which every name is markup
// with a length of megabytes.
func malicious(t *testing.T, markup string) []byte {
	t.Helper()
	name := markup + strings.Repeat("&", 1<<20)
	p, steps := tracetest.Multiplication(6)
	for i := range p.Modules {
		p.Modules[i].Name, p.Modules[i].Options = name, name
	}
	for i := range p.Functions {
		p.Functions[i].Name, p.Functions[i].Place.File = name, name
	}
	for i := range p.Blocks {
		p.Blocks[i].Label = name
	}
	for i := range p.Sites {
		p.Sites[i].Place.File = name
	}
	for i := range p.Objects {
		p.Objects[i].Name, p.Objects[i].Place.File = name, name
	}
	r, err := analysis.NewRunner(analysis.Spec{}, tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 0))
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return r.Finish(profile.State{Partial: true, Reason: name}).Encode()
}

// TestMaliciousNames checks that the page treats names in files as plain text, and shortens them to
// a length that it can show. Exports must contain the names unchanged.
func TestMaliciousNames(t *testing.T) {
	const markup = `<img src=x onerror=alert(1)>"'--><script>alert(1)</script>`
	d := newDesk(t)
	encoded := malicious(t, markup)
	d.app.importProfile(fileWith("malicious.sgp", encoded))
	env, err := vugu.NewBuildEnv(d.app.Env)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, tab := range state.Tabs() {
		d.app.Navigate("#" + d.app.Screen.With(tab).Hash())
		for row := range 3 {
			for id, grid := range d.grids {
				if row < grid.Rows {
					d.app.PickRow(id, row)
				}
				rows, _ := grid.View(0, 30)
				for _, cells := range rows {
					for _, cell := range cells {
						if len(cell) > state.MostText {
							t.Fatalf("%s: length of a cell = %d bytes, want at most %d", id, len(cell), state.MostText)
						}
					}
				}
			}
			built := env.RunBuild(d.root)
			Fit(built)
			var out bytes.Buffer
			if err := staticrender.New(&out).Render(built); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), "<img src=x") || strings.Contains(out.String(), "<script>") {
				t.Errorf("%v: the page does not escape the markup in a name", tab)
			}
			for _, text := range strings.FieldsFunc(out.String(), func(r rune) bool { return r == '<' || r == '>' }) {
				if len(html.UnescapeString(text)) > 2*state.MostText {
					t.Fatalf("%v: length of a text = %d bytes, want at most %d: %s", tab, len(text), 2*state.MostText, text[:100])
				}
			}
			seen += strings.Count(out.String(), "onerror=alert")
		}
	}
	if seen == 0 {
		t.Error("no table showed a name")
	}
}

// TestFitFillsContainers checks that the function Fit adds text to an empty element. Otherwise, the
// renderer would keep the previous content.
func TestFitFillsContainers(t *testing.T) {
	parent := &vugu.VGNode{Type: vugu.ElementNode, Data: "div"}
	empty, drawn := addElement(parent, "div\x00class\x00slot threads-on"), addElement(parent, "sg-chart")
	Fit(&vugu.BuildResults{Out: &vugu.BuildOut{Out: []*vugu.VGNode{parent}}})
	if empty.FirstChild == nil || drawn.FirstChild != nil {
		t.Errorf("first child of the empty container = %v, first child of sg-chart = %v; want a text and nil", empty.FirstChild, drawn.FirstChild)
	}
}

func TestFit(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", state.MostText)} {
		if got := state.Fit(text); got != text {
			t.Errorf("Fit(text of %d bytes) = text of %d bytes, want the same text", len(text), len(got))
		}
	}
	for _, letter := range []string{"x", "é", "漢", "&amp;", "&#34;"} {
		got := state.Fit(strings.Repeat(letter, state.MostText+1))
		letters, tail, _ := strings.Cut(got, "…")
		if len(got) > state.MostText || strings.Trim(letters, letter) != "" || len(letters)%len(letter) != 0 || !strings.HasSuffix(tail, " bytes)") {
			t.Errorf("Fit(repeated %q) ends with %q, want complete letters and the length in bytes", letter, got[len(got)-40:])
		}
	}
}
