// Package adoption contains the ways into croft and between its pools: conversion of other tools'
// configuration, adoption of existing namespaces, and moving pods.
//
// It may import: declare, rules, observe, walls, operate.
package adoption
