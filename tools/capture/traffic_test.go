package capture

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
)

// TestCommunicationOfProgram checks how much data the threads of a real program pass to each other
// through each array. The expected counts follow from the program's source.
func TestCommunicationOfProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "traffic")
	source, err := filepath.Abs("testdata/traffic/traffic.c")
	if err != nil {
		t.Fatal(err)
	}
	traceCompile(t, newestClang(t), "-g", "-O1", "-pthread", source, "-o", program)
	o := runProgram(t, nil, program)
	p := communicationOf(t, filepath.Join(o.dir, "out.sgt"))
	const threads, values = 4, 10
	want := map[string]uint64{"ring": threads * values, "matrix": threads*threads - threads, "announced": (threads - 1) * values}
	got := map[string]profile.SitePair{}
	for _, pair := range p.Communication.Pairs {
		if pair.Object == profile.NoSite {
			continue
		}
		name := p.Sites.Data[pair.Object].Name
		sum := got[name]
		sum.Events += pair.Events
		sum.Transfers += pair.Transfers
		got[name] = sum
	}
	for name, n := range want {
		if got[name].Transfers != n || got[name].Events != n {
			t.Errorf("%s: %d events and %d transfers, want %d of each", name, got[name].Events, got[name].Transfers, n)
		}
	}
	if sum := want["ring"] + want["matrix"] + want["announced"]; p.Communication.Messages != 8*sum {
		t.Errorf("the messages have %d bytes in all, want %d", p.Communication.Messages, 8*sum)
	}
}

// communicationOf analyses the communication in a trace.
func communicationOf(t *testing.T, path string) *profile.Profile {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, err := open.Open(path, file, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runner, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Communication}, reader)
	for err == nil {
		err = runner.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	p := runner.Finish(profile.State{})
	if p.Communication == nil {
		t.Fatal("the profile has no communication section")
	}
	return p
}
