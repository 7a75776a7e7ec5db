// Package workerstest contains a test suite for every workers.Carrier. The suite exchanges messages
// with a [Peer] on the other side, which is a goroutine in the tests of workers/local, and the
// program of a worker in the tests of workers/web.
package workerstest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stackglass/stackglass/workers"
)

// The commands that a test sends to the peer.
const (
	echo  = workers.TypeStart    // the peer sends the message back
	burst = workers.TypeProgress // the peer sends several messages; the field Job of the command contains their number
	leave = workers.TypeCancel   // the peer sends a last message and closes
)

// patience limits the wait for messages that must arrive. The limit is long enough for slow
// machines.
const patience = 10 * time.Minute

// Peer is the remote side of the test suite. Peer executes commands until it receives the command
// "leave" or its carrier ends.
func Peer(c workers.Carrier) error {
	if err := c.Send(workers.Message{Type: workers.TypeReady}); err != nil {
		return err
	}
	for {
		m, err := c.Receive()
		if err != nil {
			return err
		}
		switch m.Type {
		case echo:
			err = c.Send(m)
		case burst:
			for i := range m.Job {
				if err = c.Send(workers.Message{Type: burst, Job: i, Body: []byte{byte(i), byte(i >> 8)}}); err != nil {
					break
				}
			}
		case leave:
			if err := c.Send(workers.Message{Type: leave}); err != nil {
				return err
			}
			return c.Close()
		}
		if err != nil {
			return err
		}
	}
}

// TestCarrier runs the test suite for carriers. The function "open" connects to a new [Peer]. The
// parameter "attachment" is a value that the carrier must transmit unchanged.
func TestCarrier(t *testing.T, open func(t *testing.T) workers.Carrier, attachment any, same func(back any) bool) {
	tests := map[string]func(*testing.T, workers.Carrier){
		"keeps messages sent before Ready": testEarly,
		"bodies":                           testBodies,
		"order":                            testOrder,
		"attachment": func(t *testing.T, c workers.Carrier) {
			send(t, c, workers.Message{Type: echo, Job: 1, Attachment: attachment})
			receive(t, c, workers.TypeReady)
			if m := receive(t, c, echo); !same(m.Attachment) {
				t.Errorf("attachment = %v, want the attachment that was sent", m.Attachment)
			}
		},
		"peer leaves":        testLeave,
		"Close ends Receive": testClose,
		"use after Close":    testUseAfterClose,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := open(t)
			defer c.Close()
			test(t, c)
		})
	}
}

func testEarly(t *testing.T, c workers.Carrier) {
	send(t, c, workers.Message{Type: echo, Job: 7, Body: []byte("early")})
	receive(t, c, workers.TypeReady)
	if m := receive(t, c, echo); m.Job != 7 || string(m.Body) != "early" {
		t.Errorf("got %+v", m)
	}
}

func testBodies(t *testing.T, c workers.Carrier) {
	receive(t, c, workers.TypeReady)
	large := make([]byte, 3<<20)
	for i := range large {
		large[i] = byte(i * 7 >> 3)
	}
	for _, body := range [][]byte{nil, {}, {0}, []byte("abc"), large} {
		send(t, c, workers.Message{Type: echo, Job: 1<<32 - 1, Body: bytes.Clone(body)})
		m := receive(t, c, echo)
		if !bytes.Equal(m.Body, body) || m.Job != 1<<32-1 || m.Attachment != nil {
			t.Errorf("echo of a body of %d bytes: %d bytes, job %d, attachment %v", len(body), len(m.Body), m.Job, m.Attachment)
		}
		for i := range m.Body { // the body belongs to the receiver
			m.Body[i]++
		}
	}
}

func testOrder(t *testing.T, c workers.Carrier) {
	const n = 1000
	receive(t, c, workers.TypeReady)
	send(t, c, workers.Message{Type: burst, Job: n})
	for i := range uint32(n) {
		m := receive(t, c, burst)
		if m.Job != i || !bytes.Equal(m.Body, []byte{byte(i), byte(i >> 8)}) {
			t.Fatalf("message %d: job %d, body %x; want job %[1]d and the number as two bytes", i, m.Job, m.Body)
		}
	}
}

func testLeave(t *testing.T, c workers.Carrier) {
	receive(t, c, workers.TypeReady)
	send(t, c, workers.Message{Type: leave})
	receive(t, c, leave) // messages sent before the end still arrive
	if _, err := receiveWithin(t, c); !errors.Is(err, workers.ErrClosed) {
		t.Errorf("Receive after the peer left: %v, want %v", err, workers.ErrClosed)
	}
}

func testClose(t *testing.T, c workers.Carrier) {
	receive(t, c, workers.TypeReady)
	got := make(chan error, 1)
	go func() {
		_, err := c.Receive()
		got <- err
	}()
	time.Sleep(time.Millisecond) // by now, Receive is usually waiting
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-got:
		if !errors.Is(err, workers.ErrClosed) {
			t.Errorf("got %v, want %v", err, workers.ErrClosed)
		}
	case <-time.After(patience):
		t.Error("Receive keeps waiting after Close")
	}
}

func testUseAfterClose(t *testing.T, c workers.Carrier) {
	receive(t, c, workers.TypeReady)
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := c.Send(workers.Message{Type: echo}); !errors.Is(err, workers.ErrClosed) {
		t.Errorf("Send after Close: %v, want %v", err, workers.ErrClosed)
	}
	if _, err := receiveWithin(t, c); !errors.Is(err, workers.ErrClosed) {
		t.Errorf("Receive after Close: %v, want %v", err, workers.ErrClosed)
	}
}

func send(t *testing.T, c workers.Carrier, m workers.Message) {
	t.Helper()
	if err := c.Send(m); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c workers.Carrier, want workers.Type) workers.Message {
	t.Helper()
	m, err := receiveWithin(t, c)
	if err != nil || m.Type != want {
		t.Fatalf("received %v, error %v, want %v", m.Type, err, want)
	}
	return m
}

func receiveWithin(t *testing.T, c workers.Carrier) (m workers.Message, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		m, err = c.Receive()
		close(done)
	}()
	select {
	case <-done:
		return m, err
	case <-time.After(patience):
		t.Fatal("nothing received in time")
		return
	}
}
