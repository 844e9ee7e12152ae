package estate

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// TestMergeClasses fills every field of two classes. It expects the upper class's values, or
// the base's where the upper class has none. It reads the fields from the type, so it covers
// new fields.
func TestMergeClasses(t *testing.T) {
	base, upper := expandShortForms(makeFilledClass(t, "base", 1)), expandShortForms(makeFilledClass(t, "upper", 2))
	if diff := cmp.Diff(base, mergeClasses(base, &v1alpha1.AWSNodeClass{})); diff != "" {
		t.Errorf("over the base lies nothing, and something changed:\n%s", diff)
	}
	got := mergeClasses(base, upper)
	want := upper.DeepCopy()
	want.Tags = map[string]string{"base": "base", "upper": "upper"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-upper +got):\n%s", diff)
	}
	// Fields that are merged one by one inherit the base's values.
	for name, part := range map[string]*v1alpha1.AWSNodeClass{
		"kubelet":  {Kubelet: &v1alpha1.AWSKubelet{}},
		"metadata": {MetadataOptions: &v1alpha1.MetadataOptions{}},
		"tag keys": {TagKeys: &v1alpha1.AWSTagKeys{}},
	} {
		if diff := cmp.Diff(base, mergeClasses(base, part)); diff != "" {
			t.Errorf("an empty %s hides the base's:\n%s", name, diff)
		}
	}
}

// makeFilledClass returns a class with every field set, except for mutually exclusive ones.
func makeFilledClass(t *testing.T, text string, number int64) *v1alpha1.AWSNodeClass {
	t.Helper()
	class := &v1alpha1.AWSNodeClass{}
	fillValue(t, reflect.ValueOf(class).Elem(), text, number)
	class.AMIAlias, class.InstanceProfile, class.Discovery = "", "", nil
	return class
}

func fillValue(t *testing.T, v reflect.Value, text string, number int64) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(number == 2)
	case reflect.Int32, reflect.Int64:
		v.SetInt(number)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(t, v.Elem(), text, number)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(t, v.Index(0), text, number)
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fillValue(t, value, text, number)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(text).Convert(v.Type().Key()), value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[resource.Quantity]() {
			v.Set(reflect.ValueOf(*resource.NewQuantity(number, resource.DecimalSI)))
			return
		}
		for i := range v.NumField() {
			fillValue(t, v.Field(i), text, number)
		}
	default:
		t.Fatalf("a field of kind %s: add here how it is filled", v.Kind())
	}
}

// TestAWSClass tests how fields affect one another.
func TestAWSClass(t *testing.T) {
	const alias, id = `amiAlias: bottlerocket@v1.20.0`, `amiSelectorTerms: [{id: ami-1}]`
	for _, c := range []struct {
		name, platform, pool string
		want                 func(*v1alpha1.AWSNodeClass) any
		is                   any
	}{
		{"the platform's role", `role: a`, `kubelet: {maxPods: 5}`, func(c *v1alpha1.AWSNodeClass) any { return c.Role }, "a"},
		{"a profile in place of a role", `role: a`, `instanceProfile: b`, func(c *v1alpha1.AWSNodeClass) any { return c.Role + c.InstanceProfile }, "b"},
		{"a role in place of a profile", `instanceProfile: a`, `role: b`, func(c *v1alpha1.AWSNodeClass) any { return c.InstanceProfile + c.Role }, "b"},
		{"an alias brings its family", `role: a, ` + alias, `amiAlias: al2023@v1`, func(c *v1alpha1.AWSNodeClass) any { return c.AMIFamily }, v1alpha1.FamilyAL2023},
		{"an image is of the platform's family", `role: a, ` + alias, id, func(c *v1alpha1.AWSNodeClass) any { return c.AMIFamily }, v1alpha1.FamilyBottlerocket},
		{"an alias in place of an image", `role: a, amiFamily: AL2, ` + id, alias, func(c *v1alpha1.AWSNodeClass) any { return len(c.BlockDeviceMappings) }, 2},
		{"terms for one of two", `role: a, discovery: {x: y}`, `subnetSelectorTerms: [{id: subnet-1}]`, func(c *v1alpha1.AWSNodeClass) any {
			return c.SubnetSelectorTerms[0].ID + c.SecurityGroupSelectorTerms[0].Tags["x"]
		}, "subnet-1y"},
		{"discovery in place of terms", `role: a, subnetSelectorTerms: [{id: subnet-1}]`, `discovery: {x: y}`, func(c *v1alpha1.AWSNodeClass) any { return c.SubnetSelectorTerms[0].Tags["x"] }, "y"},
		{"a hop more, and tokens all the same", `role: a`, `metadataOptions: {httpPutResponseHopLimit: 2}`, func(c *v1alpha1.AWSNodeClass) any { return c.MetadataOptions.HTTPTokens }, "required"},
		{"a pool's tags win", `role: a, tags: {Project: all, A: p}`, `tags: {A: q}`, func(c *v1alpha1.AWSNodeClass) any {
			return strings.Join([]string{c.Tags["Project"], c.Tags["A"], c.Tags["NodePool"], c.Tags["CostCode"]}, " ")
		}, "all q jobs org1"},
		{"a cost code wins over the platform's tag", `role: a, tags: {CostCode: all}`, ``, func(c *v1alpha1.AWSNodeClass) any { return c.Tags["CostCode"] }, "org1"},
		{"other keys", `role: a, tagKeys: {costCode: code}`, `tagKeys: {project: team}`, func(c *v1alpha1.AWSNodeClass) any { return c.Tags["code"] + c.Tags["team"] + c.Tags["NodePool"] }, "org1jobsjobs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, e := parseValid(t, "platform: {clusterName: demo, nodeClass: {aws: {"+c.platform+"}}}\npools: {jobs: {costCode: org1, nodeClass: {aws: {"+c.pool+"}}}}\n")
			class := e.FindPool("jobs").Class.AWS
			if got := c.want(class); got != c.is {
				t.Errorf("got %v, want %v of %+v", got, c.is, class)
			}
			if class.AMIAlias != "" || class.Discovery != nil || class.TagKeys != nil {
				t.Errorf("a short form is left: %+v", class)
			}
		})
	}
}

// TestPoolClassReplacesPlatformClass fails unless a class of another kind replaces the
// platform's.
func TestPoolClassReplacesPlatformClass(t *testing.T) {
	_, e := parseValid(t, "platform: {clusterName: demo, nodeClass: {aws: {role: a}}}\npools:\n  a: {nodeClass: {kwok: {}}}\n  b: {nodeClass: {ref: {group: g, kind: K, name: n}}}\n  c:\n")
	if a, b, c := e.FindPool("a").Class, e.FindPool("b").Class, e.FindPool("c").Class; a.AWS != nil || a.Kwok == nil || b.AWS != nil || b.Ref == nil || c.AWS == nil {
		t.Errorf("%+v %+v %+v", a, b, c)
	}
}

func TestUserDataFile(t *testing.T) {
	files := map[string]string{"boot.sh": "echo boot\n", "empty": "", "binary": "\xff\xfe", "long": strings.Repeat("x", 16385)}
	open := func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, errors.New(path + ": there is no such file")
	}
	const head = "platform:\n  clusterName: demo\n  nodeClass: {aws: {role: a}}\npools:\n  jobs:\n    nodeClass:\n      aws: "
	const at = "croft.yaml:7: pools.jobs.nodeClass.aws."
	for class, want := range map[string]string{
		`{userDataFile: boot.sh}`:              "",
		`{userDataFile: boot.sh, userData: x}`: at + "userDataFile: set userData or userDataFile, not both",
		`{userDataFile: none.sh}`:              at + "userDataFile: none.sh: there is no such file",
		`{userDataFile: [a]}`:                  at + "userDataFile: must be the path of a file, relative to this one",
		`{userDataFile: empty}`:                at + "userDataFile: empty is empty, or not a text file; name another file",
		`{userDataFile: binary}`:               at + "userDataFile: binary is empty, or not a text file; name another file",
		`{userDataFile: long}`:                 at + "userData: has 16385 characters; write at most 16384",
	} {
		d, problems := manifest.ParseWith("croft.yaml", []byte(head+class+"\n"), open)
		if got := problems.Error(); got != want {
			t.Errorf("%s: got %q, want %q", class, got, want)
		}
		if want != "" {
			continue
		}
		e, _ := Build(d)
		if got := e.FindPool("jobs").Class.AWS.UserData; got != "echo boot\n" {
			t.Errorf("%s: user data %q", class, got)
		}
	}
	_, problems := manifest.ParseWith("croft.yaml", []byte("platform: {clusterName: demo, nodeClass: {aws: {role: a, userDataFile: boot.sh}}}\n"), nil)
	expectProblems(t, problems, "croft.yaml:1: platform.nodeClass.aws.userDataFile: can only be read if croft.yaml is a file; write the text itself as userData")
	_, problems = manifest.ParseWith("o.yaml", []byte("{apiVersion: croft.dev/v1alpha1, kind: Pool, metadata: {name: a}, spec: {nodeClass: {aws: {userDataFile: boot.sh}}}}\n"), open)
	expectProblems(t, problems, "o.yaml:1: Pool/a: spec.nodeClass.aws.userDataFile: there is no such field; did you mean userData?")
}
