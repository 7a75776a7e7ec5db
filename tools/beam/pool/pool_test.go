package pool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/metrics"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/state"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	pipepb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
)

// The test binary is the program of the workers too.
func TestMain(m *testing.M) {
	Child()
	flag.Parse()
	beam.Init()
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	beamlog.SetLogger(quiet{})
	if dir := os.Getenv(launcherVar); dir != "" {
		launch(dir)
		return
	}
	os.Exit(m.Run())
}

type quiet struct{}

func (quiet) Log(context.Context, beamlog.Severity, int, string) {}

const (
	lanes    = 8 // Prism runs at most eight bundles at a time
	elements = 40
	keys     = 5
)

func init() {
	register.DoFn3x1[context.Context, int, func(int, int), error](&laneFn{})
	register.Emitter2[int, int]()
	register.DoFn2x1[int, func(*int) bool, error](&sumFn{})
	register.Iter1[int]()
	register.Function3x0(scaleFn)
	register.Emitter1[int]()
	register.DoFn2x0[int, func([]byte)](&bigFn{})
	register.Function1x1(lengthFn)
	register.DoFn4x1[state.Provider, int, int, func(int, int), error](&totalFn{})
	register.Emitter1[[]byte]()
}

// laneFn is one lane of the test pipeline: it turns a lane number into
// elements (key, value), and misbehaves on the way as Fault says.
type laneFn struct {
	Dir   string // for files that tests and processes see
	Fault string
}

var counted = beam.NewCounter("pool", "elements")

func (f *laneFn) ProcessElement(ctx context.Context, lane int, emit func(int, int)) error {
	mark(f.Dir, fmt.Sprintf("begun-%d", lane))
	os.WriteFile(filepath.Join(f.Dir, fmt.Sprintf("pid-%d", lane)), []byte(strconv.Itoa(os.Getpid())), 0o666)
	// All lanes run at the same time from here on.
	for i := range lanes {
		if err := await(f.Dir, fmt.Sprintf("begun-%d", i)); err != nil {
			return err
		}
	}
	Report(Work{Name: fmt.Sprintf("lane %d", lane)})
	Report(Work{Name: "ended", Ended: true})
	for i := range elements {
		if i == elements/2 {
			if err := f.fault(lane); err != nil {
				return err
			}
		}
		counted.Inc(ctx, 1)
		emit(i%keys, lane*elements+i)
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (f *laneFn) fault(lane int) error {
	switch f.Fault {
	case "die once":
		if lane == 3 && mark(f.Dir, "died") {
			die()
		}
	case "die thrice":
		if lane == 3 && (mark(f.Dir, "died-0") || mark(f.Dir, "died-1") || mark(f.Dir, "died-2")) {
			die()
		}
	case "die":
		if lane == 3 {
			die()
		}
	case "wait":
		mark(f.Dir, fmt.Sprintf("half-%d", lane))
		return await(f.Dir, "go")
	case "error":
		if lane == 3 {
			return errors.New("app.trace:1042: label 7, want 0 to 4")
		}
	case "panic":
		if lane == 3 {
			panic("lane three")
		}
	}
	return nil
}

func die() {
	p, _ := os.FindProcess(os.Getpid())
	p.Kill()
	select {}
}

// mark creates a file and says whether it is new.
func mark(dir, name string) bool {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL, 0o666)
	f.Close()
	return err == nil
}

func await(dir, name string) error {
	for range 6000 {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s did not appear in a minute", name)
}

// sumFn writes the number and sum of a key's values to a file.
type sumFn struct{ Dir string }

func (f *sumFn) ProcessElement(key int, values func(*int) bool) error {
	var n, sum, v int
	for values(&v) {
		n++
		sum += v
	}
	name := filepath.Join(f.Dir, fmt.Sprintf("key-%d", key))
	return os.WriteFile(name, fmt.Appendf(nil, "%d values, sum %d", n, sum), 0o666)
}

// lanePipeline runs eight lanes in parallel, then groups by key.
func lanePipeline(dir, fault string) *beam.Pipeline {
	p, s := beam.NewPipelineWithRoot()
	var cols []beam.PCollection
	for lane := range lanes {
		cols = append(cols, beam.ParDo(s, &laneFn{Dir: dir, Fault: fault}, beam.Create(s, lane)))
	}
	beam.ParDo0(s, &sumFn{Dir: dir}, beam.GroupByKey(s, beam.Flatten(s, cols...)))
	return p
}

// checkLanes compares the files of sumFn with the naive sums.
func checkLanes(t *testing.T, dir string) {
	t.Helper()
	var n, sum [keys]int
	for lane := range lanes {
		for i := range elements {
			n[i%keys]++
			sum[i%keys] += lane*elements + i
		}
	}
	for key := range keys {
		got, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("key-%d", key)))
		if want := fmt.Sprintf("%d values, sum %d", n[key], sum[key]); err != nil || string(got) != want {
			t.Errorf("key %d: got %q, %v; want %q", key, got, err, want)
		}
	}
}

// checkCount compares the counter, as Prism has it in the end.
func checkCount(t *testing.T, result beam.PipelineResult) {
	t.Helper()
	got := int64(0)
	for _, c := range result.Metrics().Query(func(metrics.SingleResult) bool { return true }).Counters() {
		if c.Key.Name == "elements" {
			got += c.Result()
		}
	}
	if want := int64(lanes * elements); got != want {
		t.Errorf("counter: got %d, want %d", got, want)
	}
}

// lanePIDs returns the process of each lane's last attempt.
func lanePIDs(t *testing.T, dir string) (pids [lanes]int) {
	t.Helper()
	for lane := range lanes {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("pid-%d", lane)))
		if err != nil {
			t.Fatal(err)
		}
		pids[lane], _ = strconv.Atoi(string(text))
	}
	return pids
}

// start opens a pool that pipelines of this test use. Its close finds no
// process left.
func start(t *testing.T, opt Options) (*Pool, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	opt.Stderr = &log
	p, err := Start(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	t.Cleanup(p.Use())
	return p, &log
}

func execute(t *testing.T, p *beam.Pipeline) (beam.PipelineResult, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return prism.Execute(ctx, p)
}

func TestLanes(t *testing.T) {
	for _, workers := range []int{1, 2, 4, 8} {
		for _, fault := range []string{"", "die once", "die thrice"} {
			t.Run(fmt.Sprintf("workers=%d/fault=%s", workers, fault), func(t *testing.T) {
				pool, log := start(t, Options{Workers: workers})
				dir := t.TempDir()
				result, err := execute(t, lanePipeline(dir, fault))
				if err != nil {
					t.Fatal(err)
				}
				checkLanes(t, dir)
				checkCount(t, result)
				if fault == "" {
					count := map[int]int{}
					for _, pid := range lanePIDs(t, dir) {
						count[pid]++
					}
					if len(count) != workers {
						t.Errorf("lanes by process: %v, want %d processes", count, workers)
					}
					if count[os.Getpid()] != 0 {
						t.Error("a lane ran in the launcher")
					}
				}
				pool.Close()
				if log.Len() > 0 {
					t.Errorf("a quiet job wrote: %s", log)
				}
			})
		}
	}
}

// A worker is killed from outside while all lanes are half done.
func TestKill(t *testing.T) {
	for _, workers := range []int{1, 3} {
		t.Run(fmt.Sprintf("workers=%d", workers), func(t *testing.T) {
			pool, _ := start(t, Options{Workers: workers})
			dir := t.TempDir()
			var wg sync.WaitGroup
			wg.Go(func() {
				for lane := range lanes {
					if err := await(dir, fmt.Sprintf("half-%d", lane)); err != nil {
						t.Error(err)
					}
				}
				before := pool.PIDs()
				pool.Kill(func(slot int, _ []string) bool { return slot == workers-1 })
				for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
					if pids := pool.PIDs(); len(pids) == workers && fmt.Sprint(pids) != fmt.Sprint(before) {
						break
					}
				}
				mark(dir, "go")
			})
			result, err := execute(t, lanePipeline(dir, "wait"))
			wg.Wait()
			if err != nil {
				t.Fatal(err)
			}
			checkLanes(t, dir)
			checkCount(t, result)
		})
	}
}

// With the option Bundles, further bundles wait, and start when a worker has finished another one or
// has died.
func TestBundles(t *testing.T) {
	for _, workers := range []int{1, 3} {
		pool, _ := start(t, Options{Workers: workers, Bundles: 1})
		dir := t.TempDir()
		for lane := range lanes {
			mark(dir, fmt.Sprintf("begun-%d", lane)) // the lanes do not wait for each other
		}
		most := 0
		over, watched := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
					most = max(most, pool.mostBundles())
				}
			}
		}()
		result, err := execute(t, lanePipeline(dir, "die thrice"))
		close(over)
		<-watched
		if err != nil {
			t.Fatal(err)
		}
		checkLanes(t, dir)
		checkCount(t, result)
		if most != 1 {
			t.Errorf("%d workers: a worker ran %d bundles at a time, want 1", workers, most)
		}
		pool.Close()
	}
}

// mostBundles returns the number of bundles that the busiest worker runs.
func (p *Pool) mostBundles() (most int) {
	for _, w := range p.running() {
		w.router.mu.Lock()
		most = max(most, len(w.active))
		w.router.mu.Unlock()
	}
	return most
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		fault string
		want  []string
	}{
		{"die", []string{"gave up bundle", "its worker process was lost 4 times", "signal: killed", "while it worked on lane "}},
		{"error", []string{"app.trace:1042: label 7, want 0 to 4"}},
		{"panic", []string{"lane three"}},
	} {
		t.Run(test.fault, func(t *testing.T) {
			pool, _ := start(t, Options{Workers: 2})
			_, err := execute(t, lanePipeline(t.TempDir(), test.fault))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error without %q: %v", want, err)
				}
			}
			pids := pool.PIDs()
			pool.Close()
			for _, pid := range pids {
				if alive(pid) {
					t.Errorf("process %d lives after Close", pid)
				}
			}
		})
	}
}

func TestNoProgram(t *testing.T) {
	start(t, Options{Workers: 2, Command: []string{filepath.Join(t.TempDir(), "absent")}})
	_, err := execute(t, lanePipeline(t.TempDir(), ""))
	if err == nil || !strings.Contains(err.Error(), "could not be started in 4 attempts") || !strings.Contains(err.Error(), "absent") {
		t.Errorf("error: %v", err)
	}
}

func TestOptions(t *testing.T) {
	if _, err := Start(context.Background(), Options{}); err == nil || !strings.Contains(err.Error(), "want at least 1") {
		t.Errorf("no workers: %v", err)
	}
}

// What a worker prints comes through, with its number.
func TestStderr(t *testing.T) {
	pool, log := start(t, Options{Workers: 1, Command: []string{"/bin/sh", "-c", "echo one; echo two >&2; exit 3"}})
	_, err := execute(t, lanePipeline(t.TempDir(), ""))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error: %v", err)
	}
	pool.Close()
	if got := log.String(); !strings.Contains(got, "worker 0: one\n") || !strings.Contains(got, "worker 0: two\n") {
		t.Errorf("log: %q", got)
	}
}

// Close in the middle of a job ends the job and every process.
func TestClose(t *testing.T) {
	pool, _ := start(t, Options{Workers: 4})
	dir := t.TempDir()
	failed := make(chan error, 1)
	go func() {
		_, err := execute(t, lanePipeline(dir, "wait"))
		failed <- err
	}()
	for lane := range lanes {
		if err := await(dir, fmt.Sprintf("half-%d", lane)); err != nil {
			t.Fatal(err)
		}
	}
	pids := pool.PIDs()
	if len(pids) != 4 {
		t.Errorf("%d processes, want 4", len(pids))
	}
	pool.Close()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d lives after Close", pid)
		}
	}
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "closed while the job was running") {
		t.Errorf("job: %v", err)
	}
}

// launcherVar makes the test binary a launcher whose job never ends.
const launcherVar = "POOL_TEST_LAUNCHER"

func launch(dir string) {
	p, err := Start(context.Background(), Options{Workers: 2})
	if err != nil {
		panic(err)
	}
	p.Use()
	go prism.Execute(context.Background(), lanePipeline(dir, "wait"))
	for lane := range lanes {
		await(dir, fmt.Sprintf("half-%d", lane))
	}
	data, _ := json.Marshal(p.PIDs())
	os.WriteFile(filepath.Join(dir, "pids.tmp"), data, 0o666)
	os.Rename(filepath.Join(dir, "pids.tmp"), filepath.Join(dir, "pids"))
	select {}
}

// Workers do not outlive a launcher that is killed.
func TestLauncherDies(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), launcherVar+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err := await(dir, "pids")
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	data, _ := os.ReadFile(filepath.Join(dir, "pids"))
	if err := json.Unmarshal(data, &pids); err != nil || len(pids) != 2 {
		t.Fatalf("pids %q: %v", data, err)
	}
	for _, pid := range pids {
		for deadline := time.Now().Add(10 * time.Minute); alive(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d lives without its launcher", pid)
			}
		}
	}
}

// alive says whether a process runs. One that no one has waited for yet does
// not.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func scaleFn(x int, factor int, emit func(int)) { emit(x * factor) }

// A side input comes by state requests.
func TestSideInput(t *testing.T) {
	start(t, Options{Workers: 2})
	dir := t.TempDir()
	p, s := beam.NewPipelineWithRoot()
	scaled := beam.ParDo(s, scaleFn, beam.Create(s, 1, 2, 3), beam.SideInput{Input: beam.Create(s, 7)})
	beam.ParDo0(s, &sumFn{Dir: dir}, beam.GroupByKey(s, beam.AddFixedKey(s, scaled)))
	if _, err := execute(t, p); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "key-0")); string(got) != "3 values, sum 42" {
		t.Errorf("got %q, %v", got, err)
	}
}

// totalFn keeps a running total in user state.
type totalFn struct {
	Dir   string
	Fault string
	Total state.Value[int]
}

func (f *totalFn) ProcessElement(p state.Provider, key, value int, emit func(int, int)) error {
	total, _, err := f.Total.Read(p)
	if err != nil {
		return err
	}
	if err := f.Total.Write(p, total+value); err != nil {
		return err
	}
	if value == 3 && f.Fault == "die once" && mark(f.Dir, "died") {
		die()
	}
	emit(key, total+value)
	return nil
}

// User state works, and a bundle that has written some is not repeated: the
// first attempt's writes would stay.
func TestUserState(t *testing.T) {
	for _, fault := range []string{"", "die once"} {
		start(t, Options{Workers: 2})
		dir := t.TempDir()
		p, s := beam.NewPipelineWithRoot()
		keyed := beam.AddFixedKey(s, beam.Create(s, 3, 3, 3))
		totals := beam.ParDo(s, &totalFn{Dir: dir, Fault: fault, Total: state.MakeValueState[int]("total")}, keyed)
		beam.ParDo0(s, &sumFn{Dir: dir}, beam.GroupByKey(s, totals))
		_, err := execute(t, p)
		if fault != "" {
			if err == nil || !strings.Contains(err.Error(), "had written user state") {
				t.Errorf("error: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "key-0")); string(got) != "3 values, sum 18" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

const bigBytes = 5 << 20 // above gRPC's default of 4 MiB

// bigFn emits n elements, each of which goes out at once: the SDK buffers
// 4 MB of output. It dies after half of them if told to.
type bigFn struct{ Dir, Fault string }

func (f *bigFn) ProcessElement(n int, emit func([]byte)) {
	for i := range n {
		if i == n/2 && f.Fault == "die once" && mark(f.Dir, "died") {
			die()
		}
		emit(make([]byte, bigBytes))
	}
}

func lengthFn(b []byte) int { return len(b) }

// Elements larger than a default gRPC message pass in both directions, and
// none of those that a lost worker sent counts.
func TestLargeMessages(t *testing.T) {
	for _, fault := range []string{"", "die once"} {
		start(t, Options{Workers: 2})
		dir := t.TempDir()
		p, s := beam.NewPipelineWithRoot()
		big := beam.Reshuffle(s, beam.ParDo(s, &bigFn{Dir: dir, Fault: fault}, beam.Create(s, 6)))
		beam.ParDo0(s, &sumFn{Dir: dir}, beam.GroupByKey(s, beam.AddFixedKey(s, beam.ParDo(s, lengthFn, big))))
		if _, err := execute(t, p); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "key-0")); string(got) != fmt.Sprintf("6 values, sum %d", 6*bigBytes) {
			t.Errorf("fault %q: got %q, %v", fault, got, err)
		}
	}
}

// Two workers number their metrics differently; the router's numbers agree.
func TestShortIDs(t *testing.T) {
	info := func(name, step string, payload byte) *pipepb.MonitoringInfo {
		return &pipepb.MonitoringInfo{Urn: "beam:metric:user:sum_int64:v1", Type: "beam:metrics:sum_int64:v1",
			Labels: map[string]string{"NAME": name, "PTRANSFORM": step}, Payload: []byte{payload}}
	}
	ids := newShortIDs()
	first := ids.encode([]*pipepb.MonitoringInfo{info("a", "x", 1), info("a", "y", 2), info("b", "x", 3)})
	second := ids.encode([]*pipepb.MonitoringInfo{info("b", "x", 6), info("a", "y", 5), info("a", "x", 4)})
	if len(first) != 3 || len(second) != 3 {
		t.Fatalf("got %v and %v, want 3 metrics each", first, second)
	}
	for id, payload := range first {
		if second[id][0] != payload[0]+3 {
			t.Errorf("metric %s: payloads %v and %v", id, payload, second[id])
		}
		got := ids.describe([]string{id, "absent"})
		if len(got) != 1 || got[id].GetPayload() != nil || got[id].GetLabels()["NAME"] == "" {
			t.Errorf("metric %s: described as %v", id, got)
		}
	}
}
