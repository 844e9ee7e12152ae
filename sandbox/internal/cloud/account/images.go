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

// imageID derives an image's ID from its name, so that it is always the same.
func imageID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "ami-" + hex.EncodeToString(sum[:])[:17]
}

// families are the families of images, by the prefix of the public parameters that contain
// their newest images.
var families = map[string]string{
	"/aws/service/eks/optimized-ami/": "amazon-eks-node",
	"/aws/service/bottlerocket/":      "bottlerocket",
}

// Parameter returns the value of a public parameter, "" if there is none of its name: the ID of
// a family's image for a version of Kubernetes. It adds the image to the account if it does not
// exist.
func (a *Account) Parameter(name string) (value string, err error) {
	image := imageOf(name)
	if image == nil {
		return "", nil
	}
	if slices.ContainsFunc(a.images(), func(i Image) bool { return i.ID == image.ID }) {
		return image.ID, nil
	}
	return image.ID, a.write(func(s *state) error {
		s.Images = append(s.Images, *image)
		return nil
	})
}

func (a *Account) images() []Image {
	return append(known(), read(a, func(s *state) []Image { return s.Images })...)
}

func imageOf(parameter string) *Image {
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
			ID: imageID(parameter), Name: family + "-" + rest, Arch: arch, Owner: "amazon", Created: "2026-06-01T00:00:00.000Z",
		}
	}
	return nil
}

// known returns the newest images for Kubernetes 1.25 to 1.40.
func known() (out []Image) {
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
			out = append(out, *imageOf(fmt.Sprintf(parameter, minor)))
		}
	}
	return out
}

// Images returns the images that match.
func (a *Account) Images(f Filters, ids []string, owners []string) (out []Image) {
	for _, image := range a.images() {
		attributes := map[string][]string{
			"image-id": {image.ID}, "name": {image.Name}, "architecture": {image.Arch}, "state": {"available"},
		}
		if wanted(image.ID, ids) && wanted(image.Owner, owners) && f.match(attributes, image.Tags) {
			out = append(out, image)
		}
	}
	return out
}

// wanted reports whether a value is among the requested values, or none are requested.
func wanted(value string, asked []string) bool {
	return len(asked) == 0 || slices.Contains(asked, value)
}
