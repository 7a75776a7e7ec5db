package ask

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// TestVerbsAreComplete checks that every verb has the descriptions that people and programs need.
func TestVerbsAreComplete(t *testing.T) {
	var names []string
	for _, v := range Verbs() {
		if v.Name == "" || v.Title == "" || v.Needs == nil || v.Missing == nil || v.Answer == nil {
			t.Errorf("verb %q is incomplete: %+v", v.Name, v)
		}
		if slices.Contains(names, v.Name) || VerbOf(v.Name) != v {
			t.Errorf("two verbs are named %s", v.Name)
		}
		names = append(names, v.Name)
		if v.Machine != UsualCaches && len(v.Usual) > 0 {
			t.Errorf("%s: Machine = %d contradicts the usual caches %q", v.Name, v.Machine, v.Usual)
		}
		for i, a := range v.Args {
			if v.Arg(a.Name) != &v.Args[i] || a.Help == "" || a.Name == machine || a.Name == brief {
				t.Errorf("%s: argument %+v", v.Name, a)
			}
			if a.Default != "" {
				if err := a.check([]string{a.Default}); err != nil {
					t.Errorf("%s: the default of the argument %s is invalid: %v", v.Name, a.Name, err)
				}
			}
		}
		if v.Machine != AllCaches {
			if err := New(v).Check(); err != nil {
				t.Errorf("%s: without values: %v", v.Name, err)
			}
		}
	}
}

// drawValues draws random values of an argument. Check must accept these values.
func drawValues(t *rapid.T, a Arg) []string {
	n := 1
	if a.Kind == List {
		n = rapid.IntRange(1, 3).Draw(t, "values")
	}
	var list []string
	for range n {
		switch {
		case a.Words != nil:
			list = append(list, rapid.SampledFrom(a.Words).Draw(t, a.Name))
		case a.Kind == Number:
			list = append(list, rapid.StringMatching("[1-9][0-9]{0,5}").Draw(t, a.Name))
		case a.Kind == Switch:
			list = append(list, rapid.SampledFrom([]string{"true", "false"}).Draw(t, a.Name))
		default:
			list = append(list, rapid.StringMatching("[a-z=:, ]{1,8}").Draw(t, a.Name))
		}
	}
	return list
}

// A question that is written as words and read back is unchanged.
func TestWordsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(rapid.SampledFrom(Verbs()).Draw(t, "verb"))
		for _, a := range q.Verb.Args {
			if rapid.Bool().Draw(t, "given") {
				q = q.With(a.Name, drawValues(t, a)...)
			}
		}
		if q.Verb.Machine != NoCaches && (q.Verb.Machine == AllCaches || rapid.Bool().Draw(t, "caches")) {
			for _, text := range []string{"L1=32KiB,8,latency=4", "L2=1MiB,16,shared=all", "memory=latency=200"} {
				if err := q.Machine.Add(text); err != nil {
					t.Fatal(err)
				}
			}
		}
		q.Brief = rapid.Bool().Draw(t, "brief")
		back, err := Parse(q.Words())
		if q.Check() != nil {
			if err == nil {
				t.Fatalf("Parse accepted the invalid question %q", q.Words())
			}
			return
		}
		if err != nil || !slices.Equal(back.Words(), q.Words()) || back.Verb != q.Verb || back.Brief != q.Brief {
			t.Fatalf("%q was read back as %q, %v", q.Words(), back.Words(), err)
		}
	})
}

// The error for an invalid question contains the word that is invalid.
func TestParseErrors(t *testing.T) {
	for words, want := range map[string]string{
		"":                            "verb",
		"curves":                      `"curves"`,
		"curve line=x":                `line "x", want a whole number`,
		"curve by=core":               "want an argument of curve: line",
		"curve line=64 line=32":       "want one value",
		"threads by=corn":             `by "corn", want one of core, domain, change, view`,
		"threads curve=perhaps":       "want true or false",
		"threads by=core curve=true":  "cannot be combined",
		"threads machine=L1=32KiB":    "L1=32KiB",
		"counters sort=flops":         "sort functions or blocks",
		"counters by=block sort=flop": "want one of",
	} {
		_, err := Parse(strings.Fields(words))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): error %v, want an error with %q", words, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("threads by=core line=64 machine=L1=32KiB,8")
	f.Add("counters by=block sort=flops brief")
	f.Fuzz(func(t *testing.T, text string) {
		if q, err := Parse(strings.Split(text, "\n")); err == nil {
			if _, err := Parse(q.Words()); err != nil {
				t.Fatalf("Parse accepted %q, but rejected the words %q of the parsed question: %v", text, q.Words(), err)
			}
		}
	})
}

// TestDefaultMachine checks that the default hierarchy is the first preset if the field Usual of a
// verb lists no caches.
func TestDefaultMachine(t *testing.T) {
	q := New(&Verb{Machine: UsualCaches})
	want := hierarchy.Presets()[0]
	if got := q.Caches(); got.Name != want.Name || !slices.Equal(got.Lines(), want.Lines()) {
		t.Errorf("default hierarchy = %s, %q, want %s, %q", got.Name, got.Lines(), want.Name, want.Lines())
	}
	q.Machine.Threads, want.Threads = hierarchy.OnOneCore, hierarchy.OnOneCore
	if got := q.Caches(); !slices.Equal(got.Lines(), want.Lines()) {
		t.Errorf("on one core: %q, want %q", got.Lines(), want.Lines())
	}
	if err := q.Machine.Add("L1=2KiB,full"); err != nil {
		t.Fatal(err)
	}
	if got := q.Caches(); len(got.Levels) != 1 || got.Name != "" {
		t.Errorf("with one level: name %q and levels %q, want no name and one level", got.Name, got.Lines())
	}
}

// TestMismatchesByDigest checks that two runs are the same run if their profiles have equal digests,
// and that known digests are used instead of computing digests.
func TestMismatchesByDigest(t *testing.T) {
	p := &profile.Profile{}
	sum := p.Digest()
	same, other := hex.EncodeToString(sum[:]), strings.Repeat("0", 64)
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 1}, {"", same, 1}, {same, same, 1}, {"", other, 0}, {other, other, 1}, {same, other, 0}} {
		runs := [2]*Run{{Profile: p, Digest: c.a}, {Profile: p, Digest: c.b}}
		if got := Mismatches(runs); len(got) != c.want {
			t.Errorf("digests %q and %q: %q, want %d sentences", c.a, c.b, got, c.want)
		}
		if c.a == "" && runs[0].Digest != same {
			t.Errorf("stored digest = %q, want %q", runs[0].Digest, same)
		}
	}
}

// TestTranslationNeeds checks that what-if analyses the stack distances of pages if at least one of
// two hierarchies has TLBs.
func TestTranslationNeeds(t *testing.T) {
	for line, want := range map[string]bool{"machine=L1=1KiB,4": false, "machine=L1=1KiB,4 against=L1=2KiB,4": false,
		"machine=L1=1KiB,4 against=i7-6700": true, "machine=L1=1KiB,4 machine=DTLB=64,4,tlb against=L1=2KiB,4": true} {
		q, err := Parse(append([]string{"what-if"}, strings.Fields(line)...))
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Verb.Needs(q)&analysis.Pages != 0; got != want {
			t.Errorf("what-if %s needs distances of pages = %t, want %t", line, got, want)
		}
	}
}
