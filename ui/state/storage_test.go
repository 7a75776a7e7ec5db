package state

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/workers"
)

func TestStorage(t *testing.T) {
	entries := []profile.Entry{
		{Key: "a", State: profile.EntryComplete, Bytes: 2 << 20}, {Key: "b", State: profile.EntryPartial, Bytes: 1 << 20},
		{Key: "c", State: profile.EntryInterrupted, Bytes: 1 << 20, Outside: 2 << 20}, {Key: "d", State: profile.EntryInterrupted, Bytes: 1 << 20, Outside: 1 << 20},
	}
	for _, c := range []struct {
		used, running uint64
		key, want     string
	}{
		{0, 0, "", "8 MiB: finished 3 MiB 0.375, checkpoints 2 MiB 0.250, outside 3 MiB 0.375"},
		{16 << 20, 0, "", "16 MiB: finished 3 MiB 0.188, checkpoints 2 MiB 0.125, outside 3 MiB 0.188, rest 8 MiB 0.500"},
		{1 << 20, 7 << 20, "d", "14 MiB: finished 3 MiB 0.214, checkpoints 2 MiB 0.143, outside 9 MiB 0.643"},
	} {
		parts, total := Storage(entries, c.used, c.key, c.running)
		var list []string
		for _, p := range parts {
			list = append(list, p.ID+" "+p.Value+" "+p.Share)
		}
		if got := strings.ReplaceAll(total+": "+strings.Join(list, ", "), thin, " "); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if parts, _ := Storage(nil, 0, "", 0); len(parts) != 0 {
		t.Errorf("parts of an empty storage = %+v, want none", parts)
	}
}

// TestRunBarOfSpilledRun checks that a run's progress bar shows how much of the memory limit is
// used, and the size of the spilled data.
func TestRunBarOfSpilledRun(t *testing.T) {
	p := workers.Progress{Memory: 512 << 20, Limit: 2 << 30, Outside: 3 << 20, Beyond: true}
	facts := map[string]Fact{}
	for _, f := range NewRunBar(p).Facts {
		f.Value = strings.ReplaceAll(f.Value, thin, " ")
		facts[f.ID] = f
	}
	if m := facts["memory"]; m.Value != "512 MiB of 2 GiB" || m.Share != "0.250" {
		t.Errorf("%+v", m)
	}
	if f := facts["outside"]; f.Value != "3 MiB" {
		t.Errorf("%+v", f)
	}
}

func TestMemorySetting(t *testing.T) {
	for text, want := range map[string]uint64{"": 2 << 30, "512MiB": 512 << 20, "much": 2 << 30} {
		if got := (Settings{Memory: text}).MemoryBytes(); got != want {
			t.Errorf("memory setting %q = %d bytes, want %d", text, got, want)
		}
	}
}
