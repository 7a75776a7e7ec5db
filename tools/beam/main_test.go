package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
)

func TestReachable(t *testing.T) {
	defer func(before time.Duration) { answerTime = before }(answerTime)
	listen := func() (net.Listener, string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l, l.Addr().String()
	}
	listener, address := listen()
	server := grpc.NewServer()
	go server.Serve(listener)
	for _, endpoint := range []string{"", address, "http://" + address} {
		if err := reachable(context.Background(), endpoint); err != nil {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	server.Stop()
	silent, accepts := listen()
	defer silent.Close()
	answerTime = 300 * time.Millisecond
	for endpoint, want := range map[string]string{address: "refused", accepts: "does not answer"} {
		if err := reachable(context.Background(), endpoint); err == nil || !strings.Contains(err.Error(), "start the job server") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", endpoint, err, want)
		}
	}
}
