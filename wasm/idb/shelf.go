//go:build js && wasm

package idb

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"syscall/js"

	"github.com/hack-pad/go-indexeddb/idb"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/workers/web"
)

const (
	blocksStore = "blocks"
	// shelfMark separates a store's name and an entry's key in the name of a spill store's database.
	shelfMark = " shelf "
	// shelfBatch is the number of bytes written in a transaction.
	shelfBatch = 8 << 20
	// blockBytes is the approximate size of a block that was written before the run was
	// interrupted.
	blockBytes = 2 << 20
	// collectEvery is the number of bytes that are read and written between two garbage collections
	// of the shelf. The browser keeps the data of a request while Go refers to the request. Go's
	// garbage collector knows only the few words that each request takes in Go, so it might not run
	// before the requests refer to a gigabyte of data.
	collectEvery = 64 << 20
)

// Shelf is a stack.Shelf, the spill store of one run, in a separate database. The key of a block is
// the number run · 2^32 + block, which JavaScript represents exactly for the first 2^21 runs. Data
// is written while the program continues, so an error may be returned by a later call.
type Shelf struct {
	db      *idb.Database
	name    string
	sizes   map[float64]uint64 // for each key: the size of the block
	bytes   uint64             // total size of all blocks, in bytes
	changes []change           // changes that are not written yet, in order
	staged  int                // total size of changes, in bytes
	// receives the result when the current transaction ends; nil: no transaction
	writing chan error
	ahead   chan fetched // receives the block that is read ahead; nil: none
	next    float64      // the key of the block that is read ahead
	data    []byte       // the data that the last call of Read returned
	moved   int          // bytes read and written since the last garbage collection
}

// change is a block to write or to delete. A block to delete has no array.
type change struct {
	key   float64
	array js.Value
}

type fetched struct {
	array js.Value
	err   error
}

// OpenShelf opens the spill store of an entry in the named store. Unless the parameter "keep" is
// set, OpenShelf empties the spill store.
func OpenShelf(store, key string, keep bool) (*Shelf, error) {
	s := &Shelf{name: store + shelfMark + key, sizes: map[float64]uint64{}}
	var err error
	if s.db, err = open(s.name, blocksStore); err != nil {
		return nil, shelfError(err)
	}
	err = <-s.transact(idb.TransactionReadWrite, func(blocks *idb.ObjectStore) error {
		if !keep {
			_, err := blocks.Clear()
			return err
		}
		keys, err := blocks.GetAllKeys()
		if err != nil {
			return err
		}
		list, err := keys.Request.Await(context.Background())
		if err == nil {
			for i := range list.Length() {
				s.sizes[list.Index(i).Float()] = blockBytes
				s.bytes += blockBytes
			}
		}
		return err
	})
	return s, shelfError(err)
}

// shelfError wraps an error of a spill store.
func shelfError(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: "spill data that does not fit in memory", Err: full(err)}
}

// transact runs a function in a transaction. The channel that it returns receives the transaction's
// result when the transaction ends.
func (s *Shelf) transact(mode idb.TransactionMode, do func(*idb.ObjectStore) error) chan error {
	t, err := s.db.TransactionWithOptions(idb.TransactionOptions{Mode: mode, Durability: idb.DurabilityRelaxed}, blocksStore)
	if err != nil {
		failed := make(chan error, 1)
		failed <- err
		return failed
	}
	return startIn(t, blocksStore, do)
}

func blockKey(run, block uint32) float64 { return float64(run)*(1<<32) + float64(block) }

// Bytes returns the approximate number of stored bytes.
func (s *Shelf) Bytes() uint64 { return s.bytes }

// Write implements stack.Shelf.
func (s *Shelf) Write(run, block uint32, data []byte) error {
	key := blockKey(run, block)
	s.setSize(key, uint64(len(data)))
	s.changes = append(s.changes, change{key, web.Array(data)})
	s.collect(len(data))
	if s.staged += len(data); s.staged < shelfBatch {
		return nil
	}
	return shelfError(s.commit())
}

// Drop implements stack.Shelf.
func (s *Shelf) Drop(run, block uint32) error {
	key := blockKey(run, block)
	s.setSize(key, 0)
	s.changes = append(s.changes, change{key, js.Undefined()})
	return nil
}

// setSize records the size of a block.
func (s *Shelf) setSize(key float64, bytes uint64) {
	if s.bytes += bytes - s.sizes[key]; bytes == 0 {
		delete(s.sizes, key)
	} else {
		s.sizes[key] = bytes
	}
	if s.next == key {
		s.discard()
	}
}

// commit starts writing the changes after the current transaction has ended.
func (s *Shelf) commit() error {
	if err := s.wait(); err != nil {
		return err
	}
	s.writing = s.transact(idb.TransactionReadWrite, func(blocks *idb.ObjectStore) error {
		for _, c := range s.changes {
			var err error
			if c.array.IsUndefined() {
				_, err = blocks.Delete(js.ValueOf(c.key))
			} else if _, err = blocks.PutKey(js.ValueOf(c.key), c.array); err == nil {
				web.Release(c.array)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	clear(s.changes)
	s.changes, s.staged = s.changes[:0], 0
	return nil
}

// wait waits for the current transaction.
func (s *Shelf) wait() (err error) {
	if s.writing != nil {
		err = <-s.writing
		s.writing = nil
	}
	return err
}

// Sync waits until all changes have been written.
func (s *Shelf) Sync() error {
	var err error
	if len(s.changes) > 0 {
		err = s.commit()
	}
	if err == nil {
		err = s.wait()
	}
	return shelfError(err)
}

// Read implements stack.Shelf. Read also begins to read the next block of the same run in advance.
func (s *Shelf) Read(run, block uint32) ([]byte, error) {
	key := blockKey(run, block)
	if s.isStaged(key) {
		if err := s.commit(); err != nil {
			return nil, shelfError(err)
		}
	}
	if s.next != key {
		s.discard()
	}
	asked := s.ahead
	if s.ahead = nil; asked == nil {
		asked = s.ask(key)
	}
	got := <-asked
	if got.err == nil && !got.isBlock() {
		if err := s.wait(); err != nil { // the block may still be among the changes that are not written yet
			return nil, shelfError(err)
		}
		got.err = profile.ErrDamaged
	}
	if got.err != nil {
		return nil, &Error{Op: "read spilled data", Err: got.err}
	}
	n := got.array.Length()
	s.data = slices.Grow(s.data[:0], n)[:n]
	js.CopyBytesToGo(s.data, got.array)
	web.Release(got.array)
	s.collect(len(s.data))
	if s.next = key + 1; s.sizes[s.next] > 0 && !s.isStaged(s.next) {
		s.ahead = s.ask(s.next)
	}
	return s.data, nil
}

// collect counts the bytes read or written, and collects garbage every collectEvery bytes.
func (s *Shelf) collect(bytes int) {
	if s.moved += bytes; s.moved >= collectEvery {
		s.moved = 0
		runtime.GC()
	}
}

// discard frees the block that was read ahead but not used. If the reads alternate between several
// runs of blocks, every read discards a block. Without discard, the browser would keep this block
// until Go's next garbage collection.
func (s *Shelf) discard() {
	ahead := s.ahead
	if s.ahead = nil; ahead == nil {
		return
	}
	go func() {
		if got := <-ahead; got.err == nil && got.isBlock() {
			s.collect(got.array.Length())
			web.Release(got.array)
		}
	}()
}

// isBlock reports whether the browser's answer is a block. If the key has no block, the answer is
// JavaScript's value "undefined".
func (f *fetched) isBlock() bool { return f.array.InstanceOf(js.Global().Get("Uint8Array")) }

func (s *Shelf) isStaged(key float64) bool {
	return slices.ContainsFunc(s.changes, func(c change) bool { return c.key == key })
}

// ask requests a block.
func (s *Shelf) ask(key float64) chan fetched {
	answer := make(chan fetched, 1)
	var blocks *idb.ObjectStore
	var request *idb.Request
	t, err := s.db.Transaction(idb.TransactionReadOnly, blocksStore)
	if err == nil {
		blocks, err = t.ObjectStore(blocksStore)
	}
	if err == nil {
		request, err = blocks.Get(js.ValueOf(key))
	}
	if err == nil {
		err = request.Listen(context.Background(), func() {
			array, err := request.Result()
			answer <- fetched{array, err}
		}, func() { answer <- fetched{err: request.Err()} })
	}
	if err != nil {
		answer <- fetched{err: err}
	}
	return answer
}

// Close closes the database. Changes that were not synced may be lost.
func (s *Shelf) Close() error {
	s.discard()
	_ = s.wait()
	return s.db.Close()
}

// Remove deletes the database.
func (s *Shelf) Remove() {
	_ = s.Close()
	_ = deleteDatabase(s.name)
}

// Shelves lists the keys of the entries that have a spill store, if the browser can list databases.
func Shelves(store string) (keys []string) {
	databases := js.Global().Get("indexedDB")
	if databases.Get("databases").Type() != js.TypeFunction {
		return nil
	}
	list, err := web.Await(databases.Call("databases"))
	if err != nil {
		return nil
	}
	for i := range list.Length() {
		if key, ok := strings.CutPrefix(web.Text(list.Index(i), "name"), store+shelfMark); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// DeleteShelf deletes the spill store of an entry.
func DeleteShelf(store, key string) error { return shelfError(deleteDatabase(store + shelfMark + key)) }

// deleteDatabase deletes a database and waits until it is deleted. deleteDatabase does not wait for
// a database in use, which the browser deletes later.
func deleteDatabase(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), openPatience)
	defer cancel()
	request, err := idb.Global().DeleteDatabase(name)
	if err == nil {
		err = request.Await(ctx)
	}
	return err
}
