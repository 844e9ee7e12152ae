// Package dashboard contains croft's web pages for teams and platform admins. They have no rights
// of their own: each request to the cluster carries the token of the user who looks at the page.
//
// It may import: declare, observe, operate, walls, diagnose, prove, access, cost.
package dashboard
