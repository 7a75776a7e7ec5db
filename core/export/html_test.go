package export

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// drawProfile returns the profile of an imaginary run, with an arbitrary histogram and a set table.
// The row for one set is consistent with the histogram.
func drawProfile(t *rapid.T) *profile.Profile {
	p := &profile.Profile{Input: profile.Input{Header: trace.Header{Format: "din"}, Kinds: trace.DataKinds}}
	for _, lineBytes := range rapid.SliceOfNDistinct(rapid.SampledFrom([]uint32{8, 64, 4096}), 0, 3, rapid.ID).Draw(t, "lines") {
		l := profile.Locality{LineBytes: lineBytes, Kinds: []profile.KindLocality{{Kind: trace.Load}}}
		for range rapid.IntRange(0, 30).Draw(t, "distances") {
			d := rapid.Uint64Range(0, 1<<rapid.IntRange(0, 33).Draw(t, "bits")).Draw(t, "distance")
			l.Kinds[0].Distances.AddN(d, rapid.Uint64Range(1, 1<<40).Draw(t, "count"))
		}
		l.Kinds[0].Cold = rapid.Uint64Range(0, 1<<34).Draw(t, "cold")
		if rapid.Bool().Draw(t, "sets") {
			l.Sets = new(profile.SetTable)
			for a := range l.Sets.Depths {
				for d := range l.Sets.Depths[a] {
					l.Sets.Depths[a][d] = l.Kinds[0].Distances.Count(uint64(d))
				}
			}
		}
		l.Windows.References = profile.MinWindow
		l.Windows.Rows = make([]profile.WindowRow, rapid.IntRange(0, 4).Draw(t, "windows"))
		for i := range l.Windows.Rows {
			l.Windows.Rows[i][rapid.IntRange(0, profile.WindowBins-1).Draw(t, "bin")] = rapid.Uint64().Draw(t, "in window")
		}
		p.Locality = append(p.Locality, l)
		p.Totals.References[trace.Load] = l.Accesses()
	}
	if rapid.Bool().Draw(t, "counters") {
		p.Counters = &profile.Counters{Functions: []profile.FunctionCounters{{Name: rapid.String().Draw(t, "function")}}}
	}
	return p
}

// readReport parses a report as strict XML. It returns the report's text without the style sheet,
// and the number of elements with each tag.
func readReport(t *rapid.T, content []byte) (words string, tags map[string]int) {
	d := xml.NewDecoder(bytes.NewReader(content))
	tags = map[string]int{}
	var text strings.Builder
	inStyle := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return text.String(), tags
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, content)
		}
		switch token := token.(type) {
		case xml.StartElement:
			tags[token.Name.Local]++
			inStyle = token.Name.Local == "style"
			for _, a := range token.Attr {
				if name := a.Name.Local; name == "src" || name == "href" || strings.HasPrefix(name, "on") {
					t.Fatalf("<%s %s=%q> loads a resource or runs a script", token.Name.Local, name, a.Value)
				}
			}
		case xml.EndElement:
			inStyle = false
		case xml.CharData:
			if !inStyle {
				text.Write(token)
			} else if strings.Contains(string(token), "url(") || strings.Contains(string(token), "@import") {
				t.Fatal("the style sheet loads a resource")
			}
		}
	}
}

// TestReportOfAnyProfile checks that, for any profile and any names, the report is a well-formed
// document that loads no resources. Every chart in the report must have a title and a description.
func TestReportOfAnyProfile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProfile(t)
		r := &Report{Title: rapid.String().Draw(t, "title"), Warnings: []string{rapid.String().Draw(t, "warning")}, Profile: p,
			Facts: []report.Fact{{Label: "file", Value: report.TextOf(rapid.String().Draw(t, "fact"))}}}
		if len(p.Locality) > 0 && rapid.Bool().Draw(t, "ask") {
			lineBytes := p.Locality[0].LineBytes
			h := hierarchy.Hierarchy{Title: "a & b", Levels: []hierarchy.Cache{
				{Name: "L<1>", SizeBytes: 64 * uint64(lineBytes), Ways: 4, LineBytes: lineBytes, LatencyCycles: 4},
				{Name: "L2", SizeBytes: 1 << 30, LineBytes: lineBytes}}}
			answer, _, err := hierarchy.NewAsker(p).Predict(h, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Asked = &Question{h, answer}
		}
		content := HTML(r)
		words, tags := readReport(t, content)
		for _, want := range []string{r.Title, r.Warnings[0], r.Facts[0].Value.Human()} {
			want = strings.ReplaceAll(want, "\r", "\uFFFD")
			if clean := strings.Map(shownAs, want); !strings.Contains(words, clean) {
				t.Fatalf("the report does not contain %q", clean)
			}
		}
		if tags["script"]+tags["img"]+tags["link"]+tags["iframe"] > 0 || tags["title"] != 1+tags["svg"] || tags["desc"] != tags["svg"] || tags["h1"] != 1 {
			t.Fatalf("unexpected elements in the report: %v", tags)
		}
		for i := range p.Locality {
			if p.Locality[i].Accesses() > 0 && tags["svg"] == 0 {
				t.Fatal("the profile has accesses, but the report has no chart")
			}
		}
		if !bytes.Equal(content, HTML(r)) {
			t.Fatal("two reports of the same profile differ")
		}
	})
}

// shownAs returns the character that a document contains instead of r.
func shownAs(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff {
		return '\uFFFD'
	}
	return r
}

// TestCurvePathMatchesMissRatios parses the path of the curve. At every capacity, the height of the
// path must be the miss ratio.
func TestCurvePathMatchesMissRatios(t *testing.T) {
	counts := new(profile.Histogram)
	counts.AddN(3, 40)
	counts.AddN(100, 40)
	c := profile.NewCurve(counts, 20)
	at := newPlot(c, 64, nil)
	path := at.curvePath(c)
	want := "M64.0 " + coordinate(at.y(1)) + "H" + coordinate(at.x(4)) + "V" + coordinate(at.y(0.6)) + "H" + coordinate(at.x(101)) + "V" + coordinate(at.y(0.2)) + "H" + coordinate(right)
	if path != want || at.y(0) != bottom || at.y(1) != top || at.x(1) != left || at.x(128) != right {
		t.Errorf("the path of the curve is %s, want %s", path, want)
	}
}

func TestTableKeysAreUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProfile(t)
		seen := map[string]bool{}
		var h hierarchy.Hierarchy
		if len(p.Locality) > 0 {
			h.Levels = []hierarchy.Cache{{Name: "L1", SizeBytes: uint64(p.Locality[0].LineBytes) * 8, LineBytes: p.Locality[0].LineBytes}}
		}
		x, err := New(ask.NewRun("a run", p), "a run", h)
		if err != nil {
			t.Fatal(err)
		}
		tables, _ := x.Tables()
		for _, table := range tables {
			if seen[table.Key] || table.Key == "" {
				t.Fatalf("two tables have the key %q", table.Key)
			}
			seen[table.Key] = true
		}
		if len(p.Locality) > 0 && !seen["levels"] || p.Totals.AllReferences() > 0 && !seen["kinds"] {
			t.Fatalf("the tables %v contain no table of levels or no table of kinds", seen)
		}
	})
}

// TestReportOfSample checks that the report of a sample does not describe any estimate as exact.
func TestReportOfSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProfile(t)
		of := func() string {
			words, _ := readReport(t, HTML(&Report{Title: "a run", Profile: p}))
			return words
		}
		if len(p.Locality) > 0 && !strings.Contains(of(), "exact") {
			t.Error("the report of an exact profile does not contain the word exact")
		}
		p.Sampled = &profile.Sampled{Mode: profile.SpaceSample, Threshold: 1 << 62}
		words := strings.ReplaceAll(strings.ToLower(of()), "no more exact than that", "")
		if strings.Contains(words, "exact") || !strings.Contains(words, p.Sampled.Chip()) {
			t.Errorf("the report of a sample contains the word exact: %q", words)
		}
	})
}
