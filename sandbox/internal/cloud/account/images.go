package account

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Image is an AMI.
type Image struct {
	ID, Name, Arch, Owner string
	Created               string
	Tags                  Tags
}

// deriveImageID derives an image's ID from its name, so that it is always the same.
func deriveImageID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "ami-" + hex.EncodeToString(sum[:])[:17]
}

// families are the families of images, by the prefix of the public parameters that contain
// their newest images.
var families = map[string]string{
	"/aws/service/eks/optimized-ami/": "amazon-eks-node",
	"/aws/service/bottlerocket/":      "bottlerocket",
}

// GetParameter returns the value of a public parameter, "" if there is none of its name: the ID of
// a family's image for a version of Kubernetes. It adds the image to the account if it does not
// exist.
func (a *Account) GetParameter(name string) (value string, err error) {
	image := parseParameter(name)
	if image == nil {
		return "", nil
	}
	if slices.ContainsFunc(a.allImages(), func(i Image) bool { return i.ID == image.ID }) {
		return image.ID, nil
	}
	return image.ID, a.changeState(func(s *state) error {
		s.Images = append(s.Images, *image)
		return nil
	})
}

func (a *Account) allImages() []Image {
	return append(newestImages(), readState(a, func(s *state) []Image { return s.Images })...)
}

func parseParameter(parameter string) *Image {
	for prefix, family := range families {
		rest, ok := strings.CutPrefix(parameter, prefix)
		if !ok || !strings.HasSuffix(rest, "/image_id") {
			continue
		}
		arch := "x86_64"
		if strings.Contains(rest, "arm64") {
			arch = "arm64"
		}
		rest = strings.NewReplacer("/image_id", "", "/", "-").Replace(rest)
		return &Image{
			ID: deriveImageID(parameter), Name: family + "-" + rest, Arch: arch, Owner: "amazon", Created: "2026-06-01T00:00:00.000Z",
		}
	}
	return nil
}

// newestImages returns the newest images for Kubernetes 1.25 to 1.40.
func newestImages() (out []Image) {
	for minor := 25; minor <= 40; minor++ {
		for _, parameter := range []string{
			"/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/x86_64/standard/recommended/image_id",
			"/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/arm64/standard/recommended/image_id",
			"/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/x86_64/nvidia/recommended/image_id",
			"/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/arm64/nvidia/recommended/image_id",
			"/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/x86_64/neuron/recommended/image_id",
			"/aws/service/bottlerocket/aws-k8s-1.%d/x86_64/latest/image_id",
			"/aws/service/bottlerocket/aws-k8s-1.%d/arm64/latest/image_id",
			"/aws/service/bottlerocket/aws-k8s-1.%d-nvidia/x86_64/latest/image_id",
			"/aws/service/bottlerocket/aws-k8s-1.%d-nvidia/arm64/latest/image_id",
		} {
			out = append(out, *parseParameter(fmt.Sprintf(parameter, minor)))
		}
	}
	return out
}

// ListImages returns the images that match.
func (a *Account) ListImages(f Filters, ids []string, owners []string) (out []Image) {
	for _, image := range a.allImages() {
		attributes := map[string][]string{
			"image-id": {image.ID}, "name": {image.Name}, "architecture": {image.Arch}, "state": {"available"},
		}
		if isRequested(image.ID, ids) && isRequested(image.Owner, owners) && f.matches(attributes, image.Tags) {
			out = append(out, image)
		}
	}
	return out
}

// isRequested reports whether a value is among the requested values, or none are requested.
func isRequested(value string, asked []string) bool {
	return len(asked) == 0 || slices.Contains(asked, value)
}
