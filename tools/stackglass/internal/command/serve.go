package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cli/browser"
	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/site"
	"github.com/stackglass/stackglass/tools/stackglass/internal/system"
	"github.com/stackglass/stackglass/tools/stackglass/internal/web"
)

// friendlyAddress is the default address of the page. It is always the same, because a browser
// stores the page's data by address. If the port is in use, the server uses any free port.
const friendlyAddress = "127.0.0.1:7411"

// serve returns the verb that serves the page on this machine.
func (a *app) serve() *cobra.Command {
	var (
		address   string
		noBrowser bool
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the page on this machine and open it in a browser",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			listener, err := listen(address, !cmd.Flags().Changed("http"))
			if err != nil {
				return err
			}
			defer listener.Close()
			files, err := site.Dist()
			if err != nil {
				return err
			}
			handler, err := web.Handler(files)
			if err != nil {
				return err
			}
			url := "http://" + listener.Addr().String() + "/"
			fmt.Fprintln(a.stdout, "stackglass serves", url, "(interrupt to end)")
			if err := a.stdout.Flush(); err != nil {
				return &outputError{path: "standard output", err: err}
			}
			if !noBrowser {
				// The output of the program that opens the browser must not be mixed with the output of the
				// command.
				browser.Stdout, browser.Stderr = a.stderr, a.stderr
				if err := browser.OpenURL(url); err != nil {
					a.warn("no browser could be opened (" + strings.ReplaceAll(err.Error(), "\n", " ") + "); open " + url + " yourself")
				}
			}
			return serveUntil(cmd.Context(), listener, handler)
		},
	}
	cmd.Flags().StringVar(&address, "http", friendlyAddress, "serve the page at this `ADDRESS` of this machine; port 0 selects a free port")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "do not open the browser")
	return cmd
}

// listen listens on an address. It rejects addresses that other machines can reach, because traces
// are private.
func listen(address string, otherPort bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usagef("--http ", address, ", want HOST:PORT, for example ", friendlyAddress)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, usagef("--http ", address, ": other machines can reach this address; want 127.0.0.1, [::1] or localhost. To serve the page to other machines, put the folder site/dist on a static host")
	}
	listener, err := net.Listen("tcp", address)
	if system.IsAddressInUse(err) && otherPort {
		listener, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if system.IsAddressInUse(err) {
		return nil, usagef("--http ", address, ": another program uses this port; choose a different port, or 0 for any free port")
	}
	if err != nil {
		return nil, usagef("--http ", address, ": ", err.Error())
	}
	return listener, nil
}

// serveUntil serves requests until ctx is done, and then returns nil.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() {
		last, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(last) != nil {
			server.Close()
		}
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
