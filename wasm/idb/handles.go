//go:build js && wasm

package idb

import (
	"context"
	"syscall/js"

	"github.com/hack-pad/go-indexeddb/idb"
	"github.com/stackglass/stackglass/core/profile"
)

const handlesStore = "handles"

// Handles is a database of opaque browser values, such as file handles. Event handlers must not
// call its methods, because the methods block.
type Handles struct{ db *idb.Database }

// OpenHandles opens the database, and creates it if necessary.
func OpenHandles(name string) (*Handles, error) {
	if !isOffered() {
		return nil, &Error{Op: "open", Err: errNoStore}
	}
	db, err := open(name, handlesStore)
	if err != nil {
		return nil, &Error{Op: "open", Err: err}
	}
	return &Handles{db}, nil
}

// Close closes the database.
func (h *Handles) Close() error { return h.db.Close() }

// request sends one request in a separate transaction, and returns the result.
func (h *Handles) request(op, key string, mode idb.TransactionMode, ask func(*idb.ObjectStore) (*idb.Request, error)) (js.Value, error) {
	t, err := h.db.Transaction(mode, handlesStore)
	if err != nil {
		return js.Undefined(), &Error{op, key, err}
	}
	answer := js.Undefined()
	err = <-startIn(t, handlesStore, func(store *idb.ObjectStore) error {
		request, err := ask(store)
		if err == nil {
			answer, err = request.Await(context.Background())
		}
		return err
	})
	if err != nil {
		return js.Undefined(), &Error{op, key, err}
	}
	return answer, nil
}

// Put stores a value, and replaces any old value of the key.
func (h *Handles) Put(key string, value js.Value) error {
	_, err := h.request("keep", key, idb.TransactionReadWrite, func(s *idb.ObjectStore) (*idb.Request, error) {
		return s.PutKey(js.ValueOf(key), value)
	})
	return err
}

// Get returns the value of the last Put, or profile.ErrNotFound.
func (h *Handles) Get(key string) (js.Value, error) {
	value, err := h.request("read", key, idb.TransactionReadOnly, func(s *idb.ObjectStore) (*idb.Request, error) {
		return s.Get(js.ValueOf(key))
	})
	if err == nil && value.Type() != js.TypeObject {
		err = &Error{"read", key, profile.ErrNotFound}
	}
	return value, err
}

// Keys lists the keys.
func (h *Handles) Keys() (keys []string, err error) {
	list, err := h.request("list", "", idb.TransactionReadOnly, func(s *idb.ObjectStore) (*idb.Request, error) {
		all, err := s.GetAllKeys()
		if err != nil {
			return nil, err
		}
		return all.Request, nil
	})
	if err != nil {
		return nil, err
	}
	for i := range list.Length() {
		if key := list.Index(i); key.Type() == js.TypeString {
			keys = append(keys, key.String())
		}
	}
	return keys, nil
}

// Delete removes the value of a key, if any.
func (h *Handles) Delete(key string) error {
	_, err := h.request("delete", key, idb.TransactionReadWrite, func(s *idb.ObjectStore) (*idb.Request, error) {
		ack, err := s.Delete(js.ValueOf(key))
		if err != nil {
			return nil, err
		}
		return ack.Request, nil
	})
	return err
}
