//go:build js && wasm

// Program is the Cloudflare worker. The worker serves requests with the handler of package edge,
// and reads the site's files from the asset binding.
package main

import (
	"net/http"
	"syscall/js"

	"github.com/syumai/workers"
	"github.com/syumai/workers/cloudflare"

	"github.com/stackglass/stackglass/workers/edge"
	"github.com/stackglass/stackglass/workers/web"
)

// Names from wrangler.jsonc, and the name of the variable that contains the version, which is set
// on deployment.
const (
	assetsBinding   = "ASSETS"
	versionVariable = "VERSION"
)

func main() {
	version := "development"
	if set := cloudflare.GetBinding(versionVariable); set.Type() == js.TypeString {
		version = set.String()
	}
	workers.Serve(edge.Handler(version, http.HandlerFunc(assets)))
}

// assets answers a request with a file of the asset binding.
func assets(w http.ResponseWriter, r *http.Request) {
	request := js.Global().Get("Request").New(r.URL.String(), map[string]any{"method": r.Method, "headers": headers(r)})
	response, err := web.Await(cloudflare.GetBinding(assetsBinding).Call("fetch", request))
	if err != nil {
		http.Error(w, "the files of the site cannot be reached; try again", http.StatusBadGateway)
		return
	}
	copied := js.FuncOf(func(_ js.Value, args []js.Value) any {
		w.Header().Set(args[1].String(), args[0].String())
		return nil
	})
	response.Get("headers").Call("forEach", copied)
	copied.Release()
	status := response.Get("status").Int()
	if status == http.StatusNotFound {
		http.Error(w, "there is no such file", status)
		return
	}
	w.WriteHeader(status)
	// The body bypasses Go, which would copy it twice.
	if raw, ok := w.(interface{ WriteRawJSBody(js.Value) }); ok && !response.Get("body").IsNull() {
		raw.WriteRawJSBody(response.Get("body"))
	}
}

// headers returns the request's headers that concern accepted and cached content.
func headers(r *http.Request) map[string]any {
	passed := map[string]any{}
	for _, name := range []string{"Accept", "Accept-Encoding", "If-None-Match", "If-Modified-Since", "Range"} {
		if value := r.Header.Get(name); value != "" {
			passed[name] = value
		}
	}
	return passed
}
