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

// A decoy is a server that the page must never contact. A decoy counts connections of any protocol,
// and records the first request on each connection.
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
			go d.recordRequest(conn)
		}
	}()
	return d, nil
}

// recordRequest records the requested URL, and answers with the status "no content". For a TLS
// connection, a decoy instead records the server name that the handshake contains.
func (d *decoy) recordRequest(conn net.Conn) {
	defer conn.Close()
	said := emptyConnection
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

// emptyConnection is the record of a connection without data.
const emptyConnection = "a connection without data"

const tlsHandshake = 0x16 // the first byte that a TLS client sends

// A bufferedConn is a connection that is read through a buffer.
type bufferedConn struct {
	net.Conn
	from io.Reader
}

func (g bufferedConn) Read(p []byte) (int, error) { return g.from.Read(p) }

// serverName returns the server name that a TLS client sends in its handshake.
func serverName(conn net.Conn, from io.Reader) (name string) {
	_ = tls.Server(bufferedConn{conn, from}, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name = hello.ServerName
		return nil, errors.New("nobody is here")
	}}).Handshake()
	return name
}

// firstRequests returns the first request on each connection so far.
func (d *decoy) firstRequests() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.calls...)
}

// A server is a running `stackglass serve` process.
type server struct {
	origin  string // scheme, host and port, without a trailing slash
	address string
	home    string // the page's path, or "" for the path /
	cmd     *exec.Cmd
	once    sync.Once
}

var served = regexp.MustCompile(`http://([0-9.:]+)/`)

// serveCommand runs the command's server on a port of 127.0.0.1 until the test ends. The
// port ":0" selects any free port.
func serveCommand(t *testing.T, address string) *server {
	t.Helper()
	s, err := startServer(needStage(t).program, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stopServer)
	return s
}

// startServer starts the command's server, which runs until its method stopServer is called.
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
		s.stopServer()
		return nil, fmt.Errorf("%s printed %q, want a line with the URL of the page", strings.Join(cmd.Args, " "), line)
	}
	s.address, s.origin = found[1], "http://"+found[1]
	return s, nil
}

// stopServer terminates the server, and waits until the process has ended.
func (s *server) stopServer() {
	s.once.Do(func() {
		s.cmd.Process.Signal(os.Interrupt)
		s.cmd.Wait()
	})
}

// removeAllowed removes the given requests from the record, because the test allows them.
func (d *decoy) removeAllowed(calls ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = slices.DeleteFunc(d.calls, func(call string) bool { return slices.Contains(calls, call) })
}

// clearRequests clears the record of requests.
func (d *decoy) clearRequests() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = nil
}
