//go:build js && wasm

package host

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall/js"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/wasm/idb"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/web"
)

// The constant "tight" is a memory limit that is too small for a few hundred thousand lines.
const tight = 40 << 20

// setQuota limits the storage for this origin. The limit 0 means no limit.
func setQuota(t *testing.T, bytes uint64) {
	t.Helper()
	url := os.Getenv("WASMTEST_URL") + "quota"
	if bytes > 0 {
		url += "?bytes=" + strconv.FormatUint(bytes, 10)
	}
	response, err := web.Await(js.Global().Call("fetch", url, map[string]any{"method": "POST"}))
	if err != nil || !response.Get("ok").Bool() {
		t.Fatal("set the quota:", err)
	}
}

func storeName() string { return "host test " + strconv.Itoa(stores) }

// TestNoRoomToSpill checks that a run that has no space to spill keeps its counts, and reports why
// it ended. The test sets the limit first, because Chromium checks the remaining space only every
// half minute.
func TestNoRoomToSpill(t *testing.T) {
	setQuota(t, 3<<20)
	defer setQuota(t, 0)
	r := newRun(t, "")
	r.start(workers.Start{Key: "k", Name: "a.din", Memory: tight}, newFile(din(1_500_000, 21), 1))
	d, p := r.done()
	if !p.State.Partial || !strings.Contains(p.State.Reason, profile.ErrFull.Error()) {
		t.Errorf("%+v", p.State)
	}
	t.Logf("kept %t, %s: %s", d.Kept, d.Problem, p.State.Reason)
	if keys := idb.Shelves(storeName()); len(keys) != 0 {
		t.Errorf("remaining spill stores = %q, want none", keys)
	}
}

// TestRunSpills checks that a run whose lines do not fit in memory spills. The run's result must
// equal the result of a run that spilled from the start, even if the worker is killed during the
// run.
func TestRunSpills(t *testing.T) {
	const times = 2
	part := din(600_000, 20)
	spec := analysis.Spec{}.Beyond(locality.Budget{Shelf: new(stacktest.Shelf)})
	want := directly(t, spec, bytes.Repeat(part, times)).Encode()
	file := newFile(part, times)

	start := workers.Start{Key: "k", Name: "a.din", Memory: tight}
	r := newRun(t, "&checkpoint=100000")
	r.start(start, file)
	for at := uint64(0); ; {
		p := r.progress()
		if list, err := r.store.List(); err != nil {
			t.Fatal(err)
		} else if p.Beyond && len(list) > 0 && at == 0 {
			at = list[0].References
		} else if p.Beyond && len(list) > 0 && list[0].References > at {
			break // the checkpoint was saved after the run had begun to spill
		}
	}
	r.Close()
	r.spawn("")
	start.Resume = true
	r.start(start, file)
	if p := r.progress(); !p.Beyond || p.References == 0 {
		t.Errorf("progress at the start of the resumed run = %+v, want a run with spilled stacks", p)
	}
	var most workers.Progress
	for p := most; !p.Ending; {
		p = r.progress()
		most.Memory, most.Outside, most.Lines = max(most.Memory, p.Memory), max(most.Outside, p.Outside), p.Lines
	}
	t.Logf("%d lines, at most %d MB in memory, %d MB spilled", most.Lines, most.Memory>>20, most.Outside>>20)
	if d, _ := r.done(); most.Outside == 0 || !bytes.Equal(d.Profile, want) {
		t.Error("the profile differs from the profile of an uninterrupted run that spilled from its start")
	}
	if keys := idb.Shelves(storeName()); len(keys) != 0 {
		t.Errorf("remaining spill stores = %q, want none", keys)
	}
}
