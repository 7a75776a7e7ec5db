// Package local implements workers.Carrier for goroutines of one process, as package workers/web
// does for a page and its web workers.
package local

import "github.com/stackglass/stackglass/workers"

// carrier is one end of a connection. It puts messages into the mailbox of the other end.
type carrier struct{ own, other *workers.Mailbox }

// Pair returns the two ends of a connection. Bodies and attachments are not copied.
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
