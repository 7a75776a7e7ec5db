package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestEmptyUnused checks that exactly the unused functions lose their code, and that a program that
// may call such a function is rejected.
func TestEmptyUnused(t *testing.T) {
	var names bytes.Buffer
	program, err := changeData(buildProgram(t), takeNames(&names))
	if err != nil {
		t.Fatal(err)
	}
	short, err := emptyUnused(program, names.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	before, after := functionLengths(program), functionLengths(short)
	if len(before) != len(after) {
		t.Fatalf("the program has %d functions, want %d", len(after), len(before))
	}
	saved := 0
	for i, name := range strings.Split(strings.TrimSpace(names.String()), "\n") {
		want := before[i]
		if unusedFunctions.MatchString(name) {
			want = 3
		}
		if after[i] != want {
			t.Errorf("%s has %d bytes, want %d", name, after[i], want)
		}
		saved += before[i] - after[i]
	}
	if saved < 100_000 {
		t.Errorf("unused functions had %d bytes, want at least 100000: does the list still name the functions of the runtime?", saved)
	}
	for _, use := range []string{"runtime.StartTrace", "runtime.SetCPUProfileRate", "runtime/metrics.Read", "reflect.Value.Method"} {
		if _, err := emptyUnused(program, append([]byte(use+"\n"), names.Bytes()...)); err == nil || !strings.Contains(err.Error(), use) {
			t.Errorf("with %s: %v, want an error that names the function", use, err)
		}
	}
}

func TestUnusedFunctions(t *testing.T) {
	for name, want := range map[string]bool{
		"runtime.traceAdvance": true, "runtime.traceAdvance.func1.1": true, "runtime.traceLocker.GoStart": true,
		"runtime.(*traceMap).put": true, "runtime.initMetrics.func27": true, "runtime.(*profBuf).read": true, "time.(*Time).GoString": true, "time.Time.String": false, "internal/bisect.(*Matcher).Stack": true,
		"runtime.traceback1": false, "runtime.traceLocker.ok": false, "runtime.traceAcquire": false, "runtime.traceRelease": false,
		"runtime.initMetricsOf": false, "main.schedtrace": false, "reflect.Value.call": false,
	} {
		if got := unusedFunctions.MatchString(name); got != want {
			t.Errorf("%s is unused: %v, want %v", name, got, want)
		}
	}
}
