package e2e

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// decoy is a server that no program should contact. It counts connections in any protocol, and
// records the first request of each connection.
type decoy struct {
	port int

	mu    sync.Mutex
	calls []string
}

func newDecoy() (*decoy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &decoy{port: listener.Addr().(*net.TCPAddr).Port}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go d.note(conn)
		}
	}()
	return d, nil
}

// note records the requested URL, and answers "no content". For a TLS connection, it records the
// server name in the handshake instead.
func (d *decoy) note(conn net.Conn) {
	defer conn.Close()
	said := wordless
	from := bufio.NewReader(conn)
	if first, err := from.Peek(1); err == nil && first[0] == tlsHandshake {
		said = "TLS " + serverName(conn, from)
	} else if request, err := http.ReadRequest(from); err == nil {
		said = request.Method + " http://" + request.Host + request.URL.Path
	}
	d.mu.Lock()
	d.calls = append(d.calls, said)
	d.mu.Unlock()
	conn.Write([]byte("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"))
}

// wordless is recorded for a connection without data.
const wordless = "a connection without data"

const tlsHandshake = 0x16 // the first byte of a TLS connection

// greeting is a connection that is read through a buffer.
type greeting struct {
	net.Conn
	from io.Reader
}

func (g greeting) Read(p []byte) (int, error) { return g.from.Read(p) }

// serverName returns the server name in the handshake of a TLS client.
func serverName(conn net.Conn, from io.Reader) (name string) {
	_ = tls.Server(greeting{conn, from}, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name = hello.ServerName
		return nil, errors.New("nobody is here")
	}}).Handshake()
	return name
}

// received returns the first request of each connection so far.
func (d *decoy) received() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.calls...)
}

// server is a running `stackglass serve`.
type server struct {
	origin  string // without a trailing slash
	address string
	home    string // the page's path; "" means /
	cmd     *exec.Cmd
	once    sync.Once
}

var served = regexp.MustCompile(`http://([0-9.:]+)/`)

// serve runs the command's server on a port of 127.0.0.1 until the test ends; ":0" selects any free
// port.
func serve(t *testing.T, address string) *server {
	t.Helper()
	s, err := startServer(needStage(t).program, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

// startServer starts the command's server, which runs until stop is called.
func startServer(program, address string) (*server, error) {
	cmd := exec.Command(program, "serve", "--no-browser", "--http", "127.0.0.1"+address)
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	line, _ := bufio.NewReader(said).ReadString('\n')
	found := served.FindStringSubmatch(line)
	if found == nil {
		s.stop()
		return nil, fmt.Errorf("%s printed %q, want a line with the URL of the page", strings.Join(cmd.Args, " "), line)
	}
	s.address, s.origin = found[1], "http://"+found[1]
	return s, nil
}

// stop terminates the server and waits until it has ended.
func (s *server) stop() {
	s.once.Do(func() {
		s.cmd.Process.Signal(os.Interrupt)
		s.cmd.Wait()
	})
}

// forgive removes the given requests, which are allowed, from the record.
func (d *decoy) forgive(calls ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = slices.DeleteFunc(d.calls, func(call string) bool { return slices.Contains(calls, call) })
}

// forget clears the record.
func (d *decoy) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = nil
}
