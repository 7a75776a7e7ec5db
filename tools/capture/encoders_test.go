package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// withoutRandomAddresses runs a function. In programs that the function starts, the system places
// the stack, the heap and shared libraries at the same addresses each time.
func withoutRandomAddresses(t *testing.T, run func()) {
	t.Helper()
	const noRandomAddresses, ask = 0x40000, 0xffffffff
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _, errno := syscall.Syscall(syscall.SYS_PERSONALITY, ask, 0, 0)
	if errno != 0 {
		t.Skipf("skipped: personality: %v", errno)
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_PERSONALITY, before|noRandomAddresses, 0, 0); errno != 0 {
		t.Skipf("skipped: personality: %v", errno)
	}
	defer func() { _, _, _ = syscall.Syscall(syscall.SYS_PERSONALITY, before, 0, 0) }()
	run()
}

// rawFrames returns the frames of a trace, except for two of them. A THRD frame contains the
// system's number of a thread, which differs in each run. The index contains the positions of the
// frames, which depend on the length of that number.
func rawFrames(t *testing.T, file string) (list [][]byte) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for len(content) > 0 {
		bytes := 8 + int(binary.LittleEndian.Uint32(content[4:]))
		tag, body := string(content[8:12]), content[12:bytes-4]
		if tag == "CHNK" {
			var last uint64
			for len(body) > 0 {
				v, n := binary.Uvarint(body)
				last, body = v, body[n:]
			}
			bytes += int(last) // the LZ4 frame
		}
		if tag != "THRD" && tag != "INDX" {
			list = append(list, content[:bytes])
		}
		content = content[bytes:]
	}
	return list
}

// TestEncodersWriteSameTrace checks that the trace does not depend on the number of threads that
// encode it, if the program makes the same steps in the same order.
func TestEncodersWriteSameTrace(t *testing.T) {
	t.Run("one thread", func(t *testing.T) { sameTrace(t, buildPlay(t, "random.c"), nil, "3", "500000") })
	t.Run("relay", func(t *testing.T) { sameTrace(t, buildPlay(t, "relay.c"), nil) })
	t.Run("sliced relay", func(t *testing.T) {
		sameTrace(t, buildPlay(t, "relay.c"), []string{"STACKGLASS_ORDER=sliced"})
	})
	t.Run("region", func(t *testing.T) {
		sameTrace(t, buildPlay(t, "relay.c"), []string{"STACKGLASS_REGION=seldom"})
	})
	t.Run("limit", func(t *testing.T) {
		sameTrace(t, buildPlay(t, "ends.c"), []string{"STACKGLASS_MAX_BYTES=4M"}, "many")
	})
	t.Run("compiled program", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "gemm")
		traceCompile(t, newestClang(t), "-O1", sourceOf(t, "gemm.c"), "-o", program)
		sameTrace(t, program, nil)
	})
}

func sameTrace(t *testing.T, program string, env []string, args ...string) {
	t.Helper()
	var want [][]byte
	for _, encoders := range []string{"0", "1", "3"} {
		var o *outcome
		withoutRandomAddresses(t, func() {
			o = runProgram(t, append([]string{"STACKGLASS_ENCODERS=" + encoders}, env...), program, args...)
		})
		got := rawFrames(t, filepath.Join(o.dir, "out.sgt"))
		if want == nil {
			want = got
			if o.readTrace(t, everything).Len() == 0 {
				t.Error("the trace is empty")
			}
		}
		for i := range min(len(got), len(want)) {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("%s encoders: frame %d of %d (%s) differs from the frame that the program's own thread writes (%s)", encoders, i, len(got), got[i][8:12], want[i][8:12])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s encoders: %d frames, want %d", encoders, len(got), len(want))
		}
	}
}

// TestEncodersWithConcurrentThreads checks that the records of each thread of a program do not
// depend on the number of threads that encode them, while the threads of the program begin, run and
// end at the same time.
func TestEncodersWithConcurrentThreads(t *testing.T) {
	clang := newestClang(t)
	if !hasOpenMP(t, clang) {
		t.Skip("skipped: no OpenMP")
	}
	program := filepath.Join(t.TempDir(), "team")
	traceCompile(t, clang, "-O1", "-fopenmp", "-no-pie", "-fno-pie", sourceOf(t, "team.c"), "-o", program)
	var want []map[action]int
	for _, encoders := range []string{"0", "1", "3"} {
		o := runProgram(t, []string{"OMP_NUM_THREADS=3", "STACKGLASS_ENCODERS=" + encoders}, program)
		got := perThread(o.readTrace(t, everything&^(1<<trace.BareBlock)))
		if want == nil {
			want = got
		}
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || !maps.Equal(got[i], want[i]) {
				t.Fatalf("%s encoders: the records of thread %d of %d differ from those that the program's own threads write", encoders, i, len(got))
			}
		}
	}
}

// TestBackgroundThreadsAreInvisible checks that a program has no other threads if it makes few
// steps or requests no encoders, and that a signal that the program blocks remains blocked.
func TestBackgroundThreadsAreInvisible(t *testing.T) {
	program := buildPlay(t, "ends.c")
	for _, c := range []struct{ encoders, steps, want string }{
		{"0", "100000", "1"}, {"3", "100", "1"}, {"1", "100000", "2"},
	} {
		o := runProgram(t, []string{"STACKGLASS_ENCODERS=" + c.encoders}, program, "threads", c.steps)
		if got, _, _ := strings.Cut(string(o.stdout), "\n"); got != c.want {
			t.Errorf("%s encoders, %s steps: the program has %s threads, want %s", c.encoders, c.steps, got, c.want)
		}
	}
	for encoders := range 4 {
		o := runProgram(t, []string{fmt.Sprint("STACKGLASS_ENCODERS=", encoders)}, program, "block")
		if !o.state.Success() || string(o.stdout) != "1\ndone\n" {
			t.Errorf("%d encoders: the program printed %q and ended with %v; want 1 and done", encoders, o.stdout, o.state)
		}
	}
}
