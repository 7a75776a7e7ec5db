package workers

import "sync"

// Mailbox is the receiving half of a [Carrier]: an unbounded queue that never blocks the sender, because
// event handlers of the browser must not block. The zero value is ready.
type Mailbox struct {
	mu      sync.Mutex
	arrived sync.Cond // L is set on first use
	waiting []Message
	end     error // once waiting is empty
}

func (b *Mailbox) lock() {
	b.mu.Lock()
	if b.arrived.L == nil {
		b.arrived.L = &b.mu
	}
}

// Put appends m; after End it is dropped.
func (b *Mailbox) Put(m Message) {
	b.lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.waiting = append(b.waiting, m)
		b.arrived.Signal()
	}
}

// End makes Take return err after the messages that are still there. The first call counts.
func (b *Mailbox) End(err error) {
	b.lock()
	defer b.mu.Unlock()
	if b.end == nil {
		b.end = err
		b.arrived.Broadcast()
	}
}

// Take waits for the next message, or for the end.
func (b *Mailbox) Take() (Message, error) {
	b.lock()
	defer b.mu.Unlock()
	for len(b.waiting) == 0 {
		if b.end != nil {
			return Message{}, b.end
		}
		b.arrived.Wait()
	}
	m := b.waiting[0]
	b.waiting[0] = Message{} // lets go of the body
	b.waiting = b.waiting[1:]
	return m, nil
}

// Ended returns the error of End, nil before it.
func (b *Mailbox) Ended() error {
	b.lock()
	defer b.mu.Unlock()
	return b.end
}
