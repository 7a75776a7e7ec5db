package main

import (
	"context"
	"net"
	"strings"
	"testing"
)

func TestReachable(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := server.Addr().String()
	for _, endpoint := range []string{"", address, "http://" + address} {
		if err := reachable(context.Background(), endpoint); err != nil {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	server.Close()
	if err := reachable(context.Background(), address); err == nil || !strings.Contains(err.Error(), "start the job server") {
		t.Errorf("%s: error %v after the server was closed", address, err)
	}
}
