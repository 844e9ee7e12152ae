// What `make image` builds croft's image with. It is in a module of its own: nobody else
// needs the library that writes images.
module croft.dev/croft/hack/image

go 1.26.0

require (
	github.com/google/go-containerregistry v0.21.6
	golang.org/x/crypto/x509roots/fallback v0.0.0-20260213171211-a408498e5541
)

require (
	github.com/klauspost/compress v1.18.6 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	golang.org/x/sync v0.20.0 // indirect
)
