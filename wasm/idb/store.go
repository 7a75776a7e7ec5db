//go:build js && wasm

package idb

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sort"
	"strconv"
	"sync"
	"syscall/js"
	"time"

	"github.com/hack-pad/go-indexeddb/idb"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/workers/web"
)

// DefaultName is the name of the site's database.
const DefaultName = "stackglass"

const (
	entriesStore = "entries"
	chunksStore  = "chunks"
	chunkBytes   = profile.PieceBytes
)

// openPatience is the maximum time to wait for a database, because the browser may send no event if
// the database is blocked.
var openPatience = 10 * time.Second

// Store is a database of stored analyses. Other tabs and workers may use the same database at the
// same time. Its methods may be called from several goroutines, but not from event handlers.
type Store struct {
	name      string
	mu        sync.Mutex
	db        *idb.Database
	running   map[*idb.Transaction]bool // transactions that Suspend must abort
	suspended chan struct{}             // closed by Resume; nil if the store is not suspended
}

// Error reports a failed operation on an entry. Error wraps profile.ErrFull if the browser's
// storage is full.
type Error struct {
	Op  string // "keep", "read", "list", ...
	Key string // the entry's key; "" for the whole store
	Err error
}

func (e *Error) Error() string {
	what := "the browser's storage: " + e.Op
	if e.Key != "" {
		what += " " + strconv.Quote(e.Key)
	}
	return what + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

var (
	errNoStore = errors.New("this browser offers no IndexedDB here, perhaps because the window is private; results can only be exported")
	errBlocked = errors.New("the database cannot be opened; close other tabs of this page, or restart the browser")
	errNewer   = errors.New("a newer version of this page has stored data that this version cannot read; reload the page")
	errNoKey   = errors.New("an entry needs a key")
)

// Open opens the database, and creates it if necessary.
func Open(name string) (*Store, error) {
	s := &Store{name: name, running: map[*idb.Transaction]bool{}}
	if !isOffered() {
		return nil, &Error{Op: "open", Err: errNoStore}
	}
	if err := s.connect(); err != nil {
		return nil, &Error{Op: "open", Err: err}
	}
	return s, nil
}

// isOffered reports whether the browser offers IndexedDB. Some browsers throw an exception when a
// page accesses IndexedDB.
func isOffered() (yes bool) {
	defer func() { _ = recover() }()
	return js.Global().Get("Reflect").Call("get", js.Global(), "indexedDB").Truthy()
}

// connect opens the database again. If it fails, the old connection stays in place, and connect can
// be called again.
func (s *Store) connect() error {
	db, err := open(s.name, entriesStore, chunksStore)
	if err == nil {
		s.db = db
	}
	return err
}

// open opens a database with these object stores, and creates it if necessary.
func open(name string, stores ...string) (*idb.Database, error) {
	// Create the object stores even if the wait for the database has already ended. Otherwise, the
	// database would have the current version but no object stores, and could never be used.
	request, err := idb.Global().Open(context.Background(), name, 1, func(db *idb.Database, _, _ uint) error {
		for _, store := range stores {
			if _, err := db.CreateObjectStore(store, idb.ObjectStoreOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openPatience)
	defer cancel()
	db, err := request.Await(ctx)
	if isDOM(err, "VersionError") {
		return nil, errNewer
	}
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // the context's error, which Await does not return
		closeLate(request)
		return nil, errBlocked
	}
	return db, nil
}

// closeLate closes a database that opens after the wait has ended. An open database would block the
// next page.
func closeLate(request *idb.OpenDBRequest) {
	_ = request.Listen(context.Background(), func() {
		if db, err := request.Result(); err == nil {
			_ = db.Close()
		}
	}, func() {})
}

// Close closes the database; the store cannot be used afterwards.
func (s *Store) Close() error { return s.db.Close() }

// Suspend aborts all transactions, and delays these and later transactions until Resume. A page
// must call Suspend before the browser suspends the page. WebKit keeps the transactions of
// suspended pages open, so no other page could write to the database.
func (s *Store) Suspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended == nil {
		s.suspended = make(chan struct{})
	}
	for t := range s.running {
		if t.Abort() == nil { // otherwise, the transaction is already committed
			delete(s.running, t)
		}
	}
}

// Resume starts the delayed transactions.
func (s *Store) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended != nil {
		close(s.suspended)
		s.suspended = nil
	}
}

// begin starts a transaction. While the store is suspended, it waits for Resume. If the browser has
// closed the connection, for example because its data was cleared or its disk was removed, begin
// opens the database again.
func (s *Store) begin(mode idb.TransactionMode) (*idb.Transaction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.suspended != nil {
		resumed := s.suspended
		s.mu.Unlock()
		<-resumed
		s.mu.Lock()
	}
	options := idb.TransactionOptions{Mode: mode}
	if mode == idb.TransactionReadWrite {
		options.Durability = idb.DurabilityRelaxed
	}
	t, err := s.db.TransactionWithOptions(options, entriesStore, chunksStore)
	if isDOM(err, "InvalidStateError") {
		if err = s.connect(); err == nil {
			t, err = s.db.TransactionWithOptions(options, entriesStore, chunksStore)
		}
	}
	if err == nil {
		s.running[t] = true
	}
	return t, err
}

// endTransaction removes a transaction that has ended, and reports whether Suspend aborted it.
func (s *Store) endTransaction(t *idb.Transaction) (suspended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	suspended = !s.running[t]
	delete(s.running, t)
	return suspended
}

// transact runs the function "do" in a transaction, and waits until the transaction is committed,
// or rolled back because the function failed. If Suspend aborts the transaction, transact runs the
// function again after Resume.
func (s *Store) transact(op, key string, mode idb.TransactionMode, do func(entries, chunks *idb.ObjectStore) error) error {
	t, err := s.begin(mode)
	if err != nil {
		return &Error{op, key, err}
	}
	err = <-startIn(t, entriesStore, func(entries *idb.ObjectStore) error {
		chunks, err := t.ObjectStore(chunksStore)
		if err != nil {
			return err
		}
		return do(entries, chunks)
	})
	switch {
	case s.endTransaction(t):
		return s.transact(op, key, mode, do)
	case err == nil:
		return nil
	}
	return &Error{op, key, full(err)}
}

// startIn runs a function with an object store in a transaction. The channel receives nil when the
// transaction is committed, or an error when it is rolled back.
func startIn(t *idb.Transaction, store string, do func(*idb.ObjectStore) error) chan error {
	// The listeners must be registered before the transaction can end.
	ended := make(chan error, 1)
	go func() { ended <- t.Await(context.Background()) }()
	objects, err := t.ObjectStore(store)
	if err == nil {
		err = do(objects)
	}
	if err != nil {
		_ = t.Abort() // the transaction may have been aborted already
		<-ended
		ended <- err
	}
	return ended
}

// full returns profile.ErrFull if err is the browser's error for full storage, and otherwise err.
func full(err error) error {
	if isDOM(err, "QuotaExceededError") {
		return profile.ErrFull
	}
	return err
}

// isDOM reports whether err is the browser's error with the given name: an idb.DOMException from an
// event, or a js.Error from a call.
func isDOM(err error, name string) bool {
	var thrown js.Error
	if errors.As(err, &thrown) {
		return thrown.Value.Type() == js.TypeObject && thrown.Value.Get("name").String() == name
	}
	return errors.Is(err, idb.NewDOMException(name))
}

// chunkRange contains the keys of all chunks of an entry: [key, n] sorts before [key, []] for every number n.
func chunkRange(key string) js.Value {
	return js.Global().Get("IDBKeyRange").Call("bound", []any{key}, []any{key, []any{}})
}

// generation is the data of an entry, or of its previous checkpoint.
type generation struct {
	number int // 0 for the data of a finished analysis
	sum    profile.Sum
}

// chunkRange returns the range that contains the keys of the generation's chunks. The generation's
// number must not be 0.
func (g generation) chunkRange(key string) js.Value {
	return js.Global().Get("IDBKeyRange").Call("bound", []any{key, g.number, 0}, []any{key, g.number, []any{}})
}

func (g generation) chunkKey(key string, i int) js.Value {
	if g.number == 0 {
		return js.ValueOf([]any{key, i})
	}
	return js.ValueOf([]any{key, g.number, i})
}

// Put implements [profile.Store].
func (s *Store) Put(e profile.Entry, data []byte) error {
	if e.Key == "" {
		return &Error{"keep", "", errNoKey}
	}
	return s.transact("keep", e.Key, idb.TransactionReadWrite, func(entries, chunks *idb.ObjectStore) error {
		if _, err := chunks.Delete(chunkRange(e.Key)); err != nil {
			return err
		}
		g := generation{}
		for part := range slices.Chunk(data, chunkBytes) {
			if err := putChunk(chunks, g.chunkKey(e.Key, g.sum.Pieces), part); err != nil {
				return err
			}
			g.sum.Pieces++
		}
		g.sum = profile.SumOf(data)
		_, err := entries.PutKey(js.ValueOf(e.Key), entryToJS(e, g))
		return err
	})
}

func putChunk(chunks *idb.ObjectStore, key js.Value, part []byte) error {
	array := web.Array(part)
	_, err := chunks.PutKey(key, array)
	web.Release(array) // the browser has its own copy
	return err
}

// Save implements [profile.Checkpoints].
func (s *Store) Save(e profile.Entry, write func(io.Writer) error) error {
	if e.Key == "" {
		return &Error{"keep", "", errNoKey}
	}
	err := s.save(e, write, true)
	if errors.Is(err, profile.ErrFull) {
		err = s.save(e, write, false)
	}
	return err
}

// save stores a checkpoint. If the parameter "beside" is set, it keeps the previous checkpoint, too;
// otherwise, it replaces the previous checkpoint.
func (s *Store) save(e profile.Entry, write func(io.Writer) error, beside bool) error {
	return s.transact("keep", e.Key, idb.TransactionReadWrite, func(entries, chunks *idb.ObjectStore) error {
		old, err := find(entries, e.Key)
		if err != nil && err != profile.ErrNotFound {
			return err
		}
		var generations []generation
		if err == nil {
			if web.Text(old, "state") != string(profile.EntryInterrupted) {
				return profile.ErrFinished
			}
			generations = generationsFromJS(old)
		}
		newest := generation{number: 1}
		if len(generations) > 0 {
			newest.number = generations[0].number + 1
		}
		if err := makeRoom(chunks, e.Key, generations, beside); err != nil {
			return err
		}
		pieces := profile.NewPieces(func(i int, piece []byte) error {
			return putChunk(chunks, newest.chunkKey(e.Key, i), piece)
		})
		if err := write(pieces); err != nil {
			return err
		}
		if newest.sum, err = pieces.Close(); err != nil {
			return err
		}
		e.State, e.Bytes = profile.EntryInterrupted, newest.sum.Bytes
		object := entryToJS(e, newest)
		if beside && len(generations) > 0 {
			object.Set("before", generations[0].toJS())
		}
		_, err = entries.PutKey(js.ValueOf(e.Key), object)
		return err
	})
}

// makeRoom removes the generations that a new generation replaces. If the parameter "beside" is set,
// it keeps the newest generation.
func makeRoom(chunks *idb.ObjectStore, key string, generations []generation, beside bool) error {
	if !beside || len(generations) == 0 || generations[0].number == 0 {
		_, err := chunks.Delete(chunkRange(key))
		return err
	}
	for _, g := range generations[1:] {
		if _, err := chunks.Delete(g.chunkRange(key)); err != nil {
			return err
		}
	}
	return nil
}

// Get implements [profile.Checkpoints].
func (s *Store) Get(key string) ([]byte, error) {
	var data []byte
	err := s.transact("read", key, idb.TransactionReadOnly, func(entries, chunks *idb.ObjectStore) error {
		object, err := find(entries, key)
		if err != nil {
			return err
		}
		for _, g := range generationsFromJS(object) {
			if data, err = g.read(chunks, key); !errors.Is(err, profile.ErrDamaged) {
				break
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// read returns the data, or profile.ErrDamaged.
func (g generation) read(chunks *idb.ObjectStore, key string) ([]byte, error) {
	const mostBytes = 1 << 32 // the memory of a program cannot be larger
	if g.sum.Bytes > mostBytes || uint64(g.sum.Pieces) != (g.sum.Bytes+chunkBytes-1)/chunkBytes {
		return nil, profile.ErrDamaged
	}
	data := make([]byte, g.sum.Bytes)
	if err := g.readChunks(chunks, key, data); err != nil {
		return nil, err
	}
	if profile.SumOf(data) != g.sum {
		return nil, profile.ErrDamaged
	}
	return data, nil
}

// find returns the stored object of an entry, or profile.ErrNotFound.
func find(entries *idb.ObjectStore, key string) (js.Value, error) {
	request, err := entries.Get(js.ValueOf(key))
	if err != nil {
		return js.Undefined(), err
	}
	object, err := request.Await(context.Background())
	if err == nil && object.Type() != js.TypeObject {
		err = profile.ErrNotFound
	}
	return object, err
}

// readChunks fills data with the chunks. readChunks requests all chunks at once; event handlers
// copy them.
func (g generation) readChunks(chunks *idb.ObjectStore, key string, data []byte) error {
	n := g.sum.Pieces
	results := make(chan error, n)
	for i := range n {
		request, err := chunks.Get(g.chunkKey(key, i))
		if err != nil {
			return err
		}
		part := data[i*chunkBytes : min(len(data), (i+1)*chunkBytes)]
		err = request.Listen(context.Background(),
			func() { results <- copyChunk(part, request) },
			func() { results <- request.Err() })
		if err != nil {
			return err
		}
	}
	var first error
	for range n {
		if err := <-results; first == nil {
			first = err
		}
	}
	return first
}

func copyChunk(to []byte, request *idb.Request) error {
	array, err := request.Result()
	if err != nil {
		return err
	}
	if !array.InstanceOf(js.Global().Get("Uint8Array")) || js.CopyBytesToGo(to, array) != len(to) || array.Length() != len(to) {
		return profile.ErrDamaged
	}
	web.Release(array)
	return nil
}

// List implements [profile.Store].
func (s *Store) List() ([]profile.Entry, error) {
	var list []profile.Entry
	err := s.transact("list", "", idb.TransactionReadOnly, func(entries, _ *idb.ObjectStore) error {
		list = nil // after an abort, this function runs again
		request, err := entries.OpenCursor(idb.CursorNext)
		if err != nil {
			return err
		}
		return request.Iter(context.Background(), func(cursor *idb.CursorWithValue) error {
			object, err := cursor.Value()
			if err == nil {
				list = append(list, entryFromJS(object))
			}
			return err
		})
	})
	sort.Slice(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.Key, b.Key)) < 0
	})
	return list, err
}

// Rename implements [profile.Store].
func (s *Store) Rename(key, name string) error {
	return s.transact("rename", key, idb.TransactionReadWrite, func(entries, _ *idb.ObjectStore) error {
		object, err := find(entries, key)
		if err != nil {
			return err
		}
		object.Set("name", name)
		_, err = entries.PutKey(js.ValueOf(key), object)
		return err
	})
}

// Delete implements [profile.Checkpoints].
func (s *Store) Delete(key string) error {
	return s.transact("delete", key, idb.TransactionReadWrite, func(entries, chunks *idb.ObjectStore) error {
		if _, err := chunks.Delete(chunkRange(key)); err != nil {
			return err
		}
		_, err := entries.Delete(js.ValueOf(key))
		return err
	})
}

// Usage implements [profile.Store]. Both numbers are the browser's estimates for the whole site;
// the actual limit is often lower than the quota.
func (s *Store) Usage() (used, quota uint64, err error) {
	storage := js.Global().Get("navigator").Get("storage")
	if !storage.Truthy() {
		return 0, 0, nil // the numbers are unknown if the page is not secure
	}
	estimate, err := web.Await(storage.Call("estimate"))
	if err != nil {
		return 0, 0, &Error{"measure", "", err}
	}
	return number(estimate, "usage"), number(estimate, "quota"), nil
}
