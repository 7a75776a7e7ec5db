package pass

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAvailableMemory(t *testing.T) {
	const meminfo = "MemTotal:       24684340 kB\nMemFree:         1000000 kB\nMemAvailable:   10000000 kB\n"
	const available = 10000000 << 10
	for _, c := range []struct {
		name, meminfo, most, current string
		want                         uint64
	}{
		{"free memory decides", meminfo, "max\n", "123\n", available / 2},
		{"no control group", meminfo, "", "", available / 2},
		{"the control group is smaller", meminfo, "1000000\n", "400000\n", 300000},
		{"the control group is larger", meminfo, "99000000000000\n", "0\n", available / 2},
		{"the control group is full", meminfo, "1000\n", "2000\n", 1},
		{"only a control group", "", "1000000\n", "", 500000},
		{"another system", "", "", "", 0},
		{"nonsense", "MemAvailable: many kB\n", "few", "x", 0},
	} {
		if got := availableIn(c.meminfo, c.most, c.current); got != c.want {
			t.Errorf("%s: availableIn = %d, want %d", c.name, got, c.want)
		}
	}
}

// TestInterruptWhileOpening checks that the command can be interrupted while it opens a named pipe
// that has no writer. Without the interrupt, the call would block forever.
func TestInterruptWhileOpening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("this system does not support named pipes:", err)
	}
	ctx, interrupt := context.WithCancel(context.Background())
	interrupt()
	if _, err := Open(ctx, path, nil); !errors.Is(err, ErrInterrupted) {
		t.Errorf("got %v", err)
	}
}

func TestDemosOpen(t *testing.T) {
	in, err := Open(context.Background(), "demo:array-list", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	result, err := in.Analyze(context.Background(), Options{})
	if err != nil || result.Stopped != nil || !result.Trace || result.Profile.Totals.AllReferences() == 0 {
		t.Errorf("got %+v, %v", result, err)
	}
	if _, err := Open(context.Background(), "demo:none", nil); err == nil || !strings.Contains(err.Error(), "array-list") {
		t.Errorf("got %v", err)
	}
}

func TestChangedInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.din")
	change := map[string]func() error{
		"does not change": func() error { return nil },
		"grows":           func() error { return os.WriteFile(path, []byte("0 1000\n0 1000\n"), 0o600) },
		"shrinks":         func() error { return os.Truncate(path, 3) },
		"is written over": func() error {
			return os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour))
		},
	}
	for name, change := range change {
		if err := os.WriteFile(path, []byte("0 1000\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := Open(context.Background(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		result, err := in.Analyze(context.Background(), Options{})
		if err != nil || result.Changed != (name != "does not change") {
			t.Errorf("unexpected result for a file that %s: %+v, error %v", name, result, err)
		}
		in.Close()
	}
}
