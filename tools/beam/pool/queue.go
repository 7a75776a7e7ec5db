package pool

import (
	"context"
	"sync"
)

// queue is an unbounded first-in first-out queue between the goroutines that
// route messages, which must never block on a slow peer, and the one goroutine
// that may send on a gRPC stream.
//
// It needs no limit of its own: messages to a worker are kept for replay anyway, and Prism stores
// its messages at once.
type queue[T any] struct {
	mu    sync.Mutex
	items []T
	wake  chan struct{} // holds a token when items may be waiting
}

func newQueue[T any]() *queue[T] { return &queue[T]{wake: make(chan struct{}, 1)} }

func (q *queue[T]) put(x T) {
	q.mu.Lock()
	q.items = append(q.items, x)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue[T]) take() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = nil
	return items
}

// pump sends the items in order until the context ends or send fails.
func (q *queue[T]) pump(ctx context.Context, send func(T) error) error {
	for {
		items := q.take()
		for i, x := range items {
			var zero T
			items[i] = zero // release the message as soon as it is sent
			if err := send(x); err != nil {
				return err
			}
		}
		if len(items) > 0 {
			continue
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
