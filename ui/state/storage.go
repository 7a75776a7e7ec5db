package state

import "github.com/stackglass/stackglass/core/profile"

// StoragePart is a part of what this page keeps on the reader's disk.
type StoragePart struct{ ID, Name, Size, Share string }

// Storage tells what lies in the browser's storage, about: used bytes in all, 0: not
// known, of which entries say theirs. running lie outside of memory for the analysis
// of a key.
func Storage(entries []profile.Entry, used uint64, key string, running uint64) (parts []StoragePart, total string) {
	var finished, checkpoints, outside uint64
	for _, e := range entries {
		if e.State == profile.EntryInterrupted {
			checkpoints += e.Bytes
		} else {
			finished += e.Bytes
			continue
		}
		if e.Key == key {
			running = max(running, e.Outside)
		} else {
			outside += e.Outside
		}
	}
	outside += running
	sum := finished + checkpoints + outside
	rest := max(used, sum) - sum
	for _, p := range []struct {
		id, name string
		bytes    uint64
	}{
		{"finished", "finished analyses", finished},
		{"checkpoints", "checkpoints of interrupted ones", checkpoints},
		{"outside", "stacks outside of memory", outside},
		{"rest", "this page, and the browser's own", rest},
	} {
		if p.bytes > 0 {
			parts = append(parts, StoragePart{p.id, p.name, Bytes(p.bytes), share(p.bytes, sum+rest)})
		}
	}
	return parts, Bytes(sum + rest)
}
