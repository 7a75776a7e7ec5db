//go:build js && wasm

package idb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall/js"
	"testing"
	"time"

	"github.com/hack-pad/go-indexeddb/idb"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/profile/memstore/storetest"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/web"
)

func TestMain(m *testing.M) {
	if js.Global().Get("name").String() == "puts until it is killed" {
		putForever()
		return
	}
	if os.Getenv("WASMTEST_URL") == "" {
		println("skipped: IndexedDB needs a browser; run with go test -exec=wasmtest (tools/wasmtest)")
		return
	}
	os.Exit(m.Run())
}

var databases int

// openNew opens a new database for a test.
func openNew(t testing.TB) *Store {
	t.Helper()
	databases++
	s, err := Open("test " + strconv.Itoa(databases))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		js.Global().Get("indexedDB").Call("deleteDatabase", s.name)
	})
	return s
}

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

func TestStore(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T) profile.Store { return openNew(t) })
}

func TestCheckpoints(t *testing.T) {
	storetest.TestCheckpoints(t, func(t *testing.T) (profile.Checkpoints, func(key string)) {
		s := openNew(t)
		return s, func(key string) { damageNewest(t, s, key) }
	})
}

// damageNewest changes one byte in the newest undamaged generation.
func damageNewest(t *testing.T, s *Store, key string) {
	t.Helper()
	err := s.transact("damage", key, idb.TransactionReadWrite, func(entries, chunks *idb.ObjectStore) error {
		object, err := find(entries, key)
		if err != nil {
			return err
		}
		for _, g := range generationsFromJS(object) {
			data, err := g.read(chunks, key)
			if err != nil || len(data) == 0 {
				continue
			}
			part := data[:min(len(data), chunkBytes)]
			part[len(part)/2] ^= 1
			return putChunk(chunks, g.chunkKey(key, 0), part)
		}
		return errors.New("there is no undamaged generation to damage")
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNoOrphans checks that, after checkpoints and a result have been stored, the database contains
// only the chunks to which the entry refers.
func TestNoOrphans(t *testing.T) {
	s := openNew(t)
	count := func() (n uint) {
		err := s.transact("count", "", idb.TransactionReadOnly, func(_, chunks *idb.ObjectStore) error {
			request, err := chunks.Count()
			if err == nil {
				n, err = request.Await(context.Background())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	data := bytes.Repeat([]byte{7}, 2*chunkBytes+1)
	for i, want := range []uint{3, 6, 6, 6} {
		err := s.Save(profile.Entry{Key: "k"}, func(w io.Writer) error { _, err := w.Write(data); return err })
		if got := count(); err != nil || got != want {
			t.Errorf("chunks = %d after %d checkpoints (error %v), want %d", got, i+1, err, want)
		}
	}
	if err := s.Put(profile.Entry{Key: "k"}, data[:chunkBytes+1]); err != nil || count() != 2 {
		t.Errorf("chunks after the result = %d, want 2 (error %v)", count(), err)
	}
	if err := s.Delete("k"); err != nil || count() != 0 {
		t.Errorf("chunks after the deletion = %d, want 0 (error %v)", count(), err)
	}
}

// TestNewerVersion checks that the store does not change a database that a newer version of the
// page created.
func TestNewerVersion(t *testing.T) {
	const name = "test newer"
	opening := js.Global().Get("indexedDB").Call("open", name, 99)
	opened := make(chan struct{})
	opening.Set("onsuccess", js.FuncOf(func(js.Value, []js.Value) any { close(opened); return nil }))
	<-opened
	opening.Get("result").Call("close")
	defer js.Global().Get("indexedDB").Call("deleteDatabase", name)
	if _, err := Open(name); !errors.Is(err, errNewer) {
		t.Errorf("Open: %v, want %v", err, errNewer)
	}
}

// The function "hold" acts like a page that does not release a database. The function opens the
// database and requests its deletion, so that every later attempt to open the database must wait.
// It returns a function that releases the database.
func hold(t *testing.T, name string) (letGo func()) {
	t.Helper()
	indexedDB := js.Global().Get("indexedDB")
	opening := indexedDB.Call("open", name)
	opened, blocked := make(chan struct{}), make(chan struct{})
	opening.Set("onsuccess", js.FuncOf(func(js.Value, []js.Value) any { close(opened); return nil }))
	<-opened
	deleting := indexedDB.Call("deleteDatabase", name)
	deleting.Set("onblocked", js.FuncOf(func(js.Value, []js.Value) any { close(blocked); return nil }))
	<-blocked
	return func() { opening.Get("result").Call("close") }
}

// TestBlockedDatabase checks that the function Open reports that a database is blocked while
// another page uses it. After the other page releases the database, the database can be opened and
// is complete. A page that stopped waiting must not block the database.
func TestBlockedDatabase(t *testing.T) {
	defer func(before time.Duration) { openPatience = before }(openPatience)
	openPatience = 300 * time.Millisecond
	const name = "test blocked"
	letGo := hold(t, name)
	if _, err := Open(name); !errors.Is(err, errBlocked) {
		t.Fatalf("Open: %v, want %v", err, errBlocked)
	}
	if _, err := OpenHandles(name); !errors.Is(err, errBlocked) {
		t.Fatalf("OpenHandles: %v, want %v", err, errBlocked)
	}
	letGo()
	openPatience = 10 * time.Second
	s, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(profile.Entry{Key: "k"}, []byte("data")); err != nil {
		t.Error(err)
	}
	s.Close()
	deleted := make(chan string, 2)
	deleting := js.Global().Get("indexedDB").Call("deleteDatabase", name)
	for _, event := range []string{"blocked", "success"} {
		deleting.Set("on"+event, js.FuncOf(func(js.Value, []js.Value) any { deleted <- event; return nil }))
	}
	if what := <-deleted; what != "success" {
		t.Errorf("deletion = %s: the page that stopped waiting still keeps the database open", what)
	}
}

// TestNewerVersionIsNotBlocked checks that a newer page can change the database while an older page
// has opened it. The older page must report that a newer version exists.
func TestNewerVersionIsNotBlocked(t *testing.T) {
	s := openNew(t)
	opening := js.Global().Get("indexedDB").Call("open", s.name, 2)
	what := make(chan string, 3)
	for _, event := range []string{"blocked", "success", "error"} {
		opening.Set("on"+event, js.FuncOf(func(js.Value, []js.Value) any { what <- event; return nil }))
	}
	if got := <-what; got != "success" {
		t.Fatalf("result of opening the database in the newer page = %s, want success", got)
	}
	opening.Get("result").Call("close")
	for range 2 {
		if err := s.Put(profile.Entry{Key: "k"}, []byte("data")); !errors.Is(err, errNewer) {
			t.Errorf("Put: %v, want %v", err, errNewer)
		}
	}
}

// TestEvictedData checks that, if the browser has evicted the data, the entries are missing, but
// the store still works.
func TestEvictedData(t *testing.T) {
	s := openNew(t)
	if err := s.Put(profile.Entry{Key: "k"}, []byte("data")); err != nil {
		t.Fatal(err)
	}
	deleting := js.Global().Get("indexedDB").Call("deleteDatabase", s.name)
	gone := make(chan struct{})
	deleting.Set("onsuccess", js.FuncOf(func(js.Value, []js.Value) any { close(gone); return nil }))
	<-gone
	if got, err := s.Get("k"); !errors.Is(err, profile.ErrNotFound) {
		t.Errorf("Get: %q, %v, want %v", got, err, profile.ErrNotFound)
	}
	write := func(w io.Writer) error { _, err := w.Write([]byte("checkpoint")); return err }
	if err := s.Save(profile.Entry{Key: "k2"}, write); err != nil {
		t.Error(err)
	}
	if list, err := s.List(); err != nil || len(list) != 1 || list[0].Key != "k2" {
		t.Errorf("List: %+v, %v", list, err)
	}
}

// TestNoIndexedDB checks that the function Open returns an explanation if the browser has no
// IndexedDB, or throws an exception when IndexedDB is accessed.
func TestNoIndexedDB(t *testing.T) {
	// the function Promise throws an exception unless it is called with "new"
	indexedDB, throws := js.Global().Get("indexedDB"), js.Global().Get("Promise")
	define := js.Global().Get("Object").Get("defineProperty")
	for name, c := range map[string]struct {
		of       js.Value
		property string
		value    map[string]any
	}{
		"absent":      {js.Global(), "indexedDB", map[string]any{"value": nil, "configurable": true}},
		"not to ask":  {js.Global(), "indexedDB", map[string]any{"get": throws, "configurable": true}},
		"not to open": {indexedDB, "open", map[string]any{"value": throws, "configurable": true}},
	} {
		define.Invoke(c.of, c.property, c.value)
		_, err := Open("test none")
		_, handles := OpenHandles("test none")
		c.of.Delete(c.property) // remove the replacement, which makes the browser's own property visible again
		if err == nil || handles == nil || err.Error() != handles.Error() {
			t.Errorf("%s: Open: %v, OpenHandles: %v, want the same error", name, err, handles)
		}
		t.Logf("%s: %v", name, err)
	}
	openNew(t)
}

func TestReopenedStore(t *testing.T) {
	s := openNew(t)
	e := profile.Entry{Key: "k", Name: "n", State: profile.EntryComplete}
	data := bytes.Repeat([]byte("stack distance "), 1<<19)
	if err := s.Put(e, data); err != nil {
		t.Fatal(err)
	}
	again, err := Open(s.name)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got, err := again.Get("k"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("Get: %d bytes, %v", len(got), err)
	}
	if list, err := again.List(); err != nil || len(list) != 1 || list[0] != e {
		t.Errorf("List: %+v, %v", list, err)
	}
}

// TestSuspendedStore checks that a suspended store has no transaction that prevents another page
// from writing. Operations that begin before or during the suspension must succeed after Resume is
// called.
func TestSuspendedStore(t *testing.T) {
	s := openNew(t)
	other, err := Open(s.name)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	data := bytes.Repeat([]byte{7}, 3*chunkBytes)
	if err := s.Put(profile.Entry{Key: "a"}, data); err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 4)
	get := func() {
		got, err := s.Get("a")
		if err == nil && !bytes.Equal(got, data) {
			err = errors.New("other data")
		}
		results <- err
	}
	list := func() {
		got, err := s.List()
		if n := len(got); err == nil && (n < 1 || n > 3) {
			err = errors.New(strconv.Itoa(n) + " entries")
		}
		results <- err
	}
	go get()
	go list()
	go func() { results <- s.Put(profile.Entry{Key: "b"}, data) }()
	for running := 0; running < 3; runtime.Gosched() {
		s.mu.Lock()
		running = len(s.running)
		s.mu.Unlock()
	}
	s.Suspend()
	go get()
	if err := other.Put(profile.Entry{Key: "c"}, data); err != nil {
		t.Error(err)
	}
	if list, err := other.List(); err != nil || len(list) != 2 {
		t.Errorf("entries = %v, %v, want a and c", list, err)
	}
	if len(results) != 0 {
		t.Errorf("operations that ended while the store was suspended = %d, want 0", len(results))
	}
	s.Resume()
	for range 4 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if list, err := other.List(); err != nil || len(list) != 3 {
		t.Errorf("entries = %v, %v, want a, b and c", list, err)
	}
}

// TestClosedConnection checks that the store opens a new connection if the browser has closed the
// old one.
func TestClosedConnection(t *testing.T) {
	s := openNew(t)
	if err := s.Put(profile.Entry{Key: "k"}, []byte("data")); err != nil {
		t.Fatal(err)
	}
	s.db.Close()
	if got, err := s.Get("k"); err != nil || string(got) != "data" {
		t.Errorf("Get: %q, %v", got, err)
	}
}

// TestDamagedData checks that every kind of damage causes an error, and never wrong bytes.
func TestDamagedData(t *testing.T) {
	damage := map[string]func(chunks *idb.ObjectStore) error{
		"a chunk is missing": func(chunks *idb.ObjectStore) error {
			_, err := chunks.Delete(generation{}.chunkKey("k", 1))
			return err
		},
		"a chunk has different bytes": func(chunks *idb.ObjectStore) error {
			_, err := chunks.PutKey(generation{}.chunkKey("k", 0), js.Global().Get("Uint8Array").New(chunkBytes))
			return err
		},
		"a chunk is too short": func(chunks *idb.ObjectStore) error {
			_, err := chunks.PutKey(generation{}.chunkKey("k", 1), js.Global().Get("Uint8Array").New(5))
			return err
		},
		"a chunk is not bytes": func(chunks *idb.ObjectStore) error {
			_, err := chunks.PutKey(generation{}.chunkKey("k", 1), js.ValueOf("text"))
			return err
		},
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			s := openNew(t)
			if err := s.Put(profile.Entry{Key: "k"}, bytes.Repeat([]byte{7}, 2*chunkBytes)); err != nil {
				t.Fatal(err)
			}
			err := s.transact("damage", "k", idb.TransactionReadWrite,
				func(_, chunks *idb.ObjectStore) error { return do(chunks) })
			if err != nil {
				t.Fatal(err)
			}
			var failed *Error
			if _, err := s.Get("k"); !errors.Is(err, profile.ErrDamaged) || !errors.As(err, &failed) || failed.Key != "k" {
				t.Errorf("Get: %v, want %v", err, profile.ErrDamaged)
			}
			if err := s.Put(profile.Entry{Key: "k"}, []byte("whole")); err != nil {
				t.Error(err)
			}
			if got, err := s.Get("k"); err != nil || string(got) != "whole" {
				t.Errorf("Get after Put: %q, %v", got, err)
			}
		})
	}
}

const tornName = "test torn"

// putForever is the program of a worker that repeatedly replaces the same entry. Each value is a
// repetition of one byte.
func putForever() {
	c := web.Self()
	s, err := Open(tornName)
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		data := bytes.Repeat([]byte{byte(i)}, 12<<20+i)
		if err := s.Put(profile.Entry{Key: "k", References: uint64(i)}, data); err != nil {
			panic(err)
		}
		if i < 2 {
			c.Send(workers.Message{Type: workers.TypeReady})
		}
	}
}

// TestKilledWhileWriting checks that, if a worker is killed while it is writing, the store still
// contains a complete value.
func TestKilledWhileWriting(t *testing.T) {
	base := os.Getenv("WASMTEST_URL")
	for _, wait := range []time.Duration{0, 15, 40, 75} {
		c, err := web.Spawn(base+"src/wasm/worker/worker.js?wasm="+base+"test.wasm", "puts until it is killed")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := c.Receive(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(wait * time.Millisecond)
		c.Close()
		s, err := Open(tornName)
		if err != nil {
			t.Fatal(err)
		}
		data, err := s.Get("k")
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.List()
		if err != nil || len(list) != 1 || len(data) != 12<<20+int(list[0].References) || data[0] != byte(list[0].References) {
			t.Errorf("entry = %d bytes with the value %d, entries = %+v, %v; want a complete value", len(data), data[0], list, err)
		}
		t.Logf("killed after value %d", list[0].References)
		s.Close()
	}
	js.Global().Get("indexedDB").Call("deleteDatabase", tornName)
}

func BenchmarkPut64MiB(b *testing.B) {
	s := openNew(b)
	data := make([]byte, 64<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := s.Put(profile.Entry{Key: "k"}, data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet64MiB(b *testing.B) {
	s := openNew(b)
	data := make([]byte, 64<<20)
	if err := s.Put(profile.Entry{Key: "k"}, data); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := s.Get("k"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	s := openNew(b)
	for i := range 50 {
		if err := s.Put(profile.Entry{Key: strconv.Itoa(i)}, []byte("data")); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := s.List(); err != nil {
			b.Fatal(err)
		}
	}
}
