// Package local connects goroutines as package workers/web connects workers.
package local

import "github.com/stackglass/stackglass/workers"

// carrier is one end: it puts into the other end's mailbox.
type carrier struct{ own, other *workers.Mailbox }

// Pair returns the two ends of one connection. Bodies and attachments are not copied.
func Pair() (asker, host workers.Carrier) {
	a, b := new(workers.Mailbox), new(workers.Mailbox)
	return &carrier{a, b}, &carrier{b, a}
}

func (c *carrier) Send(m workers.Message) error {
	if c.own.Ended() != nil {
		return workers.ErrClosed
	}
	c.other.Put(m)
	return nil
}

func (c *carrier) Receive() (workers.Message, error) { return c.own.Take() }

func (c *carrier) Close() error {
	c.own.End(workers.ErrClosed)
	c.other.End(workers.ErrClosed)
	return nil
}
