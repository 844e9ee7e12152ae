package server

import (
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// largestPage is the maximum size of a page in bytes, independent of its objects.
const largestPage = 1 << 18

// readPayloads returns the hostile texts by their names.
func readPayloads(t *testing.T) map[string]string {
	t.Helper()
	payloads := map[string]string{}
	readYAML(t, "testdata/payloads.yaml", &payloads)
	payloads["long line"] = strings.Repeat("<b>long</b>\u00a0", largestPage/13)
	payloads["many lines"] = strings.Repeat("<i>line\r\n", 5_000)
	return payloads
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// hostileServer is an API server whose own answers contain hostile texts, too.
type hostileServer struct {
	*apiServer
	// user is the name and the group of every user; empty for the usual ones.
	user string
	// refusal is the message with which changes and dry runs are refused, and a warning.
	refusal string
}

func startHostileServer(t *testing.T) *hostileServer {
	t.Helper()
	h := &hostileServer{apiServer: startAPIServer(t), refusal: "harmless"}
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	h.entry = &clientcmdapi.Cluster{
		Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	return h
}

// changeServer changes the server while it serves requests.
func (h *hostileServer) changeServer(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// ServeHTTP implements http.Handler.
func (h *hostileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var user, refusal string
	h.changeServer(func() { user, refusal = h.user, h.refusal })
	respond := func(code int, document map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(document)
	}
	switch {
	case user != "" && strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		respond(http.StatusCreated, map[string]any{
			"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "status": map[string]any{"userInfo": map[string]any{"username": user, "groups": []string{user}}},
		})
	case r.Method == http.MethodPatch, r.URL.Query().Has("dryRun"):
		if warning, err := utilnet.NewWarningHeader(299, "-", refusal); err == nil && len(warning) < 10_000 {
			w.Header().Set("Warning", warning)
		}
		respond(http.StatusUnprocessableEntity, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": http.StatusUnprocessableEntity, "message": refusal,
		})
	default:
		h.apiServer.ServeHTTP(w, r)
	}
}

// fields are objects in which tenants and pods write texts.
type fields struct {
	// objects are the documents by their paths, with signs around the name of each field.
	objects map[string]string
	// names are the names of the fields.
	names []string
}

var signed = regexp.MustCompile(`§([^§]+)§`)

func readFields(t *testing.T) *fields {
	t.Helper()
	documents := map[string]any{}
	readYAML(t, "testdata/fields.yaml", &documents)
	f := &fields{objects: map[string]string{}}
	for path, document := range documents {
		text, isLog := document.(string)
		if !isLog {
			data, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
		}
		f.objects[path] = text
		for _, found := range signed.FindAllStringSubmatch(text, -1) {
			f.names = append(f.names, found[1])
		}
	}
	slices.Sort(f.names)
	f.names = slices.Compact(f.names)
	return f
}

// fillFields returns the objects with a text in one field, and a harmless text of its own in each
// other one.
func (f *fields) fillFields(t *testing.T, name, text string) map[string]string {
	t.Helper()
	filled := maps.Clone(f.objects)
	for path, object := range filled {
		filled[path] = signed.ReplaceAllStringFunc(object, func(found string) string {
			field := strings.Trim(found, "§")
			value := f.getHarmlessText(field)
			if field == name {
				value = text
			}
			if strings.HasSuffix(path, "/log") {
				return value
			}
			quoted, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Trim(string(quoted), `"`)
		})
	}
	return filled
}

// findObject returns the path of an object with the field.
func (f *fields) findObject(name string) string {
	for path, object := range f.objects {
		if strings.Contains(object, "§"+name+"§") {
			return path
		}
	}
	return ""
}

// getHarmlessText returns the text that only this field has. It is valid in each field, and no part
// of another one.
func (f *fields) getHarmlessText(name string) string {
	return "field-" + string(rune('a'+slices.Index(f.names, name)/26)) + string(rune('a'+slices.Index(f.names, name)%26)) + "-x"
}

// varying are the attributes whose values may contain texts.
var varying = []string{"href", "action", "formaction", "value", "aria-label", "title", "datetime", "data-version"}

// linking are the attributes with URLs.
var linking = []string{"href", "action", "formaction", "src", "srcset", "data", "poster", "ping", "cite", "background", "manifest", "http-equiv"}

// content is a page as a browser parses it.
type content struct {
	// elements are the elements with their attributes.
	elements []string
	// links are the values of attributes with URLs.
	links []string
}

func parsePage(t *testing.T, body string) content {
	t.Helper()
	var c content
	tree, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range tree.Descendants() {
		switch n.Type {
		case html.ElementNode:
		case html.CommentNode:
			c.elements = append(c.elements, "comment")
			continue
		default:
			continue
		}
		element := n.Namespace + n.Data
		for _, a := range n.Attr {
			element += " " + a.Namespace + a.Key
			if !slices.Contains(varying, a.Key) {
				element += "=" + a.Val
			}
			if slices.Contains(linking, a.Key) {
				c.links = append(c.links, a.Val)
			}
		}
		c.elements = append(c.elements, element)
	}
	slices.Sort(c.elements) // lists are sorted by texts
	return c
}

// isInvisible reports whether a character on a page cannot be seen.
func isInvisible(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	default:
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
	}
}

// knownHeaders are the headers that responses may have.
var knownHeaders = []string{"Content-Type", "Content-Length", "Content-Disposition", "Date", "Location", "Set-Cookie", "Transfer-Encoding", "Connection"}

// checkHostile reports the harm that a hostile text does in a response. Its page must have the elements of
// one of the harmless pages.
func checkHostile(t *testing.T, name string, got response, harmless ...content) {
	t.Helper()
	for header, values := range got.header {
		if _, secure := securityHeaders[header]; !secure && !slices.Contains(knownHeaders, header) {
			t.Errorf("%s: the response has a header %s", name, header)
		}
		if text := strings.Join(values, ""); strings.ContainsFunc(text, unicode.IsControl) || len(text) > 64<<10 {
			t.Errorf("%s: the header %s is %.100q", name, header, text)
		}
	}
	if location := got.header.Get("Location"); got.header.Values("Location") != nil && (!strings.HasPrefix(location, "/") || strings.HasPrefix(location, "//") || strings.Contains(location, `\`)) {
		t.Errorf("%s: the response leads to %.100q", name, location)
	}
	switch kind := got.header.Get("Content-Type"); {
	case kind == "text/plain; charset=utf-8" && got.header.Get("X-Content-Type-Options") == "nosniff", got.body == "":
		return // browsers show it as a text
	case kind != "text/html; charset=utf-8":
		t.Errorf("%s: the response has the type %s", name, kind)
	}
	if len(got.body) > largestPage {
		t.Errorf("%s: the page has %d bytes", name, len(got.body))
	}
	// Browsers do not show the page of a redirect.
	if i := strings.IndexFunc(got.body, isInvisible); i >= 0 && got.header.Get("Location") == "" {
		t.Errorf("%s: the page contains the invisible %.10q", name, got.body[i:])
	}
	page := parsePage(t, got.body)
	i := slices.IndexFunc(harmless, func(h content) bool { return slices.Equal(h.elements, page.elements) })
	if i < 0 {
		t.Errorf("%s: status %d: other elements than on the harmless page:\n%s", name, got.status, diffElements(harmless[0].elements, page.elements))
		return
	}
	for _, link := range page.links {
		if !isLocal(link) && !slices.Contains(harmless[i].links, link) {
			t.Errorf("%s: the page links to %.100q", name, link)
		}
	}
}

// isLocal reports whether a browser opens a link at the dashboard itself, at the path that it begins with.
func isLocal(link string) bool {
	path, _, _ := strings.Cut(link, "?")
	climbs := slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool {
		segment = strings.ReplaceAll(strings.ToLower(segment), "%2e", ".")
		return segment == "." || segment == ".."
	})
	return strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "//") && !strings.Contains(link, `\`) && !climbs
}

// diffElements returns the elements that only one of two pages has.
func diffElements(want, got []string) string {
	count := map[string]int{}
	for _, e := range want {
		count[e]--
	}
	for _, e := range got {
		count[e]++
	}
	var lines []string
	for e, n := range count {
		if n != 0 {
			lines = append(lines, strings.Repeat("+", max(n, 0))+strings.Repeat("-", max(-n, 0))+" "+e)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
