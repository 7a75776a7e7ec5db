// Package parallel runs independent function calls at the same time, on all processors.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls do(i) for each i from 0 to n - 1, and returns when all calls have returned. Calls
// begin in ascending order, and run concurrently if there are several processors. A program in the
// browser has only one processor.
func Each(n int, do func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers < 2 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var others sync.WaitGroup
	for range workers - 1 {
		others.Add(1)
		go func() {
			defer others.Done()
			work()
		}()
	}
	work()
	others.Wait()
}

// OneAtATime returns a function that several goroutines may call at the same time. This function
// calls the parameter ask, but each call waits until the previous call has ended. If ask is nil,
// OneAtATime returns nil.
func OneAtATime(ask func() bool) func() bool {
	if ask == nil {
		return nil
	}
	var mutex sync.Mutex
	return func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return ask()
	}
}
