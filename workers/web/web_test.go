//go:build js && wasm

package web

import (
	"errors"
	"os"
	"strings"
	"syscall/js"
	"testing"
	"time"

	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/workerstest"
)

// The test binary is also the program of the workers that the tests start. A worker's name selects
// its task.
func TestMain(m *testing.M) {
	switch js.Global().Get("name").String() {
	case "peer":
		workerstest.Peer(Self())
		return
	case "panics":
		panic("on purpose")
	case "out of memory":
		outOfMemory()
	case "silent":
		Self()
		// Let the worker announce its lock first. The end of a worker that is still loading is
		// detected in a different way.
		time.Sleep(100 * time.Millisecond)
		js.Global().Call("close")
		<-make(chan struct{}) // the program waits forever, but its worker ends
	case "throws":
		throwInPromise()
	case "poisons":
		for _, poison := range poisons() {
			js.Global().Call("postMessage", poison)
		}
		workerstest.Peer(Self())
		return
	case "busy":
		busy(Self())
		return
	}
	if os.Getenv("WASMTEST_URL") == "" {
		println("skipped: web workers need a browser; run with go test -exec=wasmtest (tools/wasmtest)")
		return
	}
	os.Exit(m.Run())
}

func outOfMemory() {
	var all [][]byte
	for {
		all = append(all, make([]byte, 256<<20))
		_ = all
	}
}

// throwInPromise makes the clock throw an exception, and reads the clock when a promise is
// resolved. From then on, the worker waits only for promises. If a function that a promise
// calls throws an exception, the worker has no error event.
func throwInPromise() {
	throws := map[string]any{"value": js.Global().Get("JSON").Get("parse")} // JSON.parse throws if it is called without an argument
	object, performance := js.Global().Get("Object"), js.Global().Get("performance")
	take := object.Get("defineProperty").Call("bind", object, performance, "now", throws)
	js.Global().Get("Promise").Call("resolve").Call("then", take).Call("then", Function(func([]js.Value) { _ = time.Now() }))
	<-make(chan struct{})
}

// The function "busy" computes, and yields every 20 ms until it receives a message. The function
// then sends the number of times that it has yielded.
func busy(c workers.Carrier) {
	stop := make(chan struct{})
	go func() {
		c.Send(workers.Message{Type: workers.TypeReady})
		c.Receive()
		close(stop)
	}()
	yields := uint32(0)
	for {
		for begin := time.Now(); time.Since(begin) < 20*time.Millisecond; {
		}
		Yield()
		yields++
		select {
		case <-stop:
			c.Send(workers.Message{Type: workers.TypeDone, Job: yields})
			return
		default:
		}
	}
}

func spawn(t *testing.T, name string) workers.Carrier {
	t.Helper()
	base := os.Getenv("WASMTEST_URL")
	c, err := Spawn(base+"src/wasm/worker/worker.js?wasm="+base+"test.wasm", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCarrier(t *testing.T) {
	file := js.Global().Get("File").New([]any{"some ", "bytes"}, "name.din")
	workerstest.TestCarrier(t,
		func(t *testing.T) workers.Carrier { return spawn(t, "peer") },
		file,
		func(back any) bool {
			v, ok := back.(js.Value)
			if !ok || v.Get("name").String() != "name.din" {
				return false
			}
			text, err := Await(v.Call("text"))
			return err == nil && text.String() == "some bytes"
		})
}

func wantDead(t *testing.T, c workers.Carrier, code int, why string) {
	t.Helper()
	_, err := c.Receive()
	var dead *workers.DeadError
	if !errors.As(err, &dead) || dead.Code != code || !strings.Contains(dead.Why, why) {
		t.Errorf("Receive: %v, want the end with code %d and %q", err, code, why)
	}
	if err := c.Send(workers.Message{Type: workers.TypeStart}); !errors.As(err, &dead) {
		t.Errorf("Send: %v", err)
	}
}

func TestPanicIsReported(t *testing.T) { wantDead(t, spawn(t, "panics"), 2, "panic: on purpose") }

func TestOutOfMemoryIsReported(t *testing.T) {
	wantDead(t, spawn(t, "out of memory"), 2, "out of memory")
}

func TestExceptionInPromiseIsReported(t *testing.T) {
	wantDead(t, spawn(t, "throws"), -1, "JSON")
}

// TestSilentEndIsReported checks that a worker is reported as dead if it ends without a message,
// for example because the browser ends it.
func TestSilentEndIsReported(t *testing.T) {
	wantDead(t, spawn(t, "silent"), -1, "without a message")
}

// The function "poisons" returns messages that no carrier sends.
func poisons() []any {
	nested := js.ValueOf(map[string]any{})
	nested.Set("self", nested)
	return []any{
		nil, 5, "text", true, nested, []any{1, 2}, map[string]any{},
		map[string]any{"type": "start", "job": 1}, map[string]any{"type": 1}, map[string]any{"job": 1},
		map[string]any{"type": -1, "job": 1}, map[string]any{"type": 1e300, "job": 1}, map[string]any{"type": 1.5, "job": 1},
		map[string]any{"type": js.Global().Get("NaN"), "job": 1}, map[string]any{"type": 1, "job": -1}, map[string]any{"type": 1, "job": 1e300},
		map[string]any{"type": 2, "job": 1, "body": map[string]any{"length": 1e15}}, map[string]any{"type": 2, "job": 1, "body": "text"},
		map[string]any{"type": 2, "job": 1, "body": js.Global().Get("Uint8Array").New(5)}, map[string]any{"type": 2, "job": 1, "body": nil},
		map[string]any{"exited": "text"}, map[string]any{"alive": 5},
	}
}

// TestInvalidMessagesAreDropped checks that both sides drop messages that no carrier sends, and
// that valid messages still arrive.
func TestInvalidMessagesAreDropped(t *testing.T) {
	c := spawn(t, "poisons")
	for _, poison := range poisons() {
		c.(*carrier).remote.Call("postMessage", poison)
	}
	want := workers.Message{Type: workers.TypeStart, Job: 7, Body: []byte("body")}
	if err := c.Send(workers.Message{Type: want.Type, Job: want.Job, Body: []byte("body")}); err != nil {
		t.Fatal(err)
	}
	if m, err := c.Receive(); err != nil || m.Type != workers.TypeReady {
		t.Fatalf("received %+v, %v", m, err)
	}
	if m, err := c.Receive(); err != nil || m.Type != want.Type || m.Job != want.Job || string(m.Body) != string(want.Body) {
		t.Errorf("received %+v, %v, want the sent message", m, err)
	}
}

// TestReceivedMessagesAreFreed checks that the browser's copy of a message is released as soon as
// the message is taken. Go's garbage collector does not know the size of this copy, so it may run
// late.
func TestReceivedMessagesAreFreed(t *testing.T) {
	object := js.Global().Get("Object")
	body := js.Global().Get("Uint8Array").New(3)
	js.CopyBytesToJS(body, []byte("abc"))
	buffer, data, event := body.Get("buffer"), object.New(), object.New()
	data.Set("type", int(workers.TypeSnapshot))
	data.Set("job", 7)
	data.Set("body", buffer)
	event.Set("data", data)
	c := &carrier{}
	c.takeMessage(event)
	m, err := c.Receive()
	if err != nil || m.Type != workers.TypeSnapshot || m.Job != 7 || string(m.Body) != "abc" {
		t.Fatalf("got %+v, %v", m, err)
	}
	if n := buffer.Get("byteLength").Int(); n != 0 {
		t.Errorf("bytes of the message that the browser keeps = %d, want 0", n)
	}
}

func TestMissingScriptIsReported(t *testing.T) {
	c, err := Spawn(os.Getenv("WASMTEST_URL")+"src/none.js", "none")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wantDead(t, c, -1, "could not be loaded")
}

func TestMissingProgramIsReported(t *testing.T) {
	base := os.Getenv("WASMTEST_URL")
	c, err := Spawn(base+"src/wasm/worker/worker.js?wasm="+base+"none.wasm", "none")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wantDead(t, c, -1, "404")
}

func TestSendRefusesForeignAttachment(t *testing.T) {
	c := spawn(t, "peer")
	if err := c.Send(workers.Message{Type: workers.TypeStart, Attachment: 5}); err == nil || !strings.Contains(err.Error(), "want a File") {
		t.Errorf("got %v", err)
	}
	uncloneable := js.Global().Get("Function").Get("prototype")
	if err := c.Send(workers.Message{Type: workers.TypeStart, Attachment: uncloneable}); err == nil {
		t.Error("Send accepted a function, want an error")
	}
}

// TestYieldReceivesMessages checks that a worker that computes and yields receives messages from
// the page.
func TestYieldReceivesMessages(t *testing.T) {
	c := spawn(t, "busy")
	if m, err := c.Receive(); err != nil || m.Type != workers.TypeReady {
		t.Fatal(m, err)
	}
	time.Sleep(200 * time.Millisecond)
	c.Send(workers.Message{Type: workers.TypeCancel})
	m, err := c.Receive()
	if err != nil || m.Type != workers.TypeDone || m.Job == 0 {
		t.Errorf("received %+v, %v", m, err)
	}
	t.Logf("%d yields", m.Job)
}

func TestAwait(t *testing.T) {
	promise := js.Global().Get("Promise")
	if v, err := Await(promise.Call("resolve", 7)); err != nil || v.Int() != 7 {
		t.Errorf("got %v, %v", v, err)
	}
	refusal := js.Global().Get("Error").New("no")
	if _, err := Await(promise.Call("reject", refusal)); err == nil || !strings.Contains(err.Error(), "no") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkYield(b *testing.B) {
	for b.Loop() {
		Yield()
	}
}
