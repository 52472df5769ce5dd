// node-addon-api, whose inline code does not compile cleanly with -Wshadow.
//
// An isolate may be terminated inside any of our functions (worker.terminate). JavaScript then cannot receive an
// exception, and without the macro the library would abort the process.
#pragma once
#define NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include <napi.h>
#pragma GCC diagnostic pop
