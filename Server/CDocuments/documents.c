#include "CDocuments.h"

// `#embed` belongs to C23, and Clang has it in each dialect. A literal of 100,000 numbers in Swift takes ten seconds to compile.
#pragma clang diagnostic ignored "-Wc23-extensions"

#define DOCUMENT(name)                                      \
  CDocument document_##name(void) {                         \
    CDocument document = {name##_bytes, sizeof name##_bytes}; \
    return document;                                        \
  }

static const unsigned char openapi_bytes[] = {
#embed "../LarderBackend/Endpoints/openapi.json"
};
DOCUMENT(openapi)

static const unsigned char problems_bytes[] = {
#embed "../LarderBackend/Endpoints/problems.json"
};
DOCUMENT(problems)

static const unsigned char control_openapi_bytes[] = {
#embed "../LarderServer/API/control-openapi.json"
};
DOCUMENT(control_openapi)

static const unsigned char journeys_bytes[] = {
#embed "../LarderServer/Faults/journeys.json"
};
DOCUMENT(journeys)

static const unsigned char scenarios_bytes[] = {
#embed "../LarderServer/Scenarios/scenarios.json"
};
DOCUMENT(scenarios)

static const unsigned char dashboard_page_bytes[] = {
#embed "../LarderServer/Dashboard/page.html"
};
DOCUMENT(dashboard_page)

static const unsigned char dashboard_style_bytes[] = {
#embed "../LarderServer/Dashboard/style.css"
};
DOCUMENT(dashboard_style)

// A script may use declarations of earlier ones.
static const unsigned char dashboard_script_bytes[] = {
#embed "../LarderServer/Dashboard/elements.js"
    ,
#embed "../LarderServer/Dashboard/words.js"
    ,
#embed "../LarderServer/Dashboard/server.js"
    ,
#embed "../LarderServer/Dashboard/journal.js"
    ,
#embed "../LarderServer/Dashboard/details.js"
    ,
#embed "../LarderServer/Dashboard/table.js"
    ,
#embed "../LarderServer/Dashboard/plot.js"
    ,
#embed "../LarderServer/Dashboard/timeline.js"
    ,
#embed "../LarderServer/Dashboard/compare.js"
    ,
#embed "../LarderServer/Dashboard/keys.js"
    ,
#embed "../LarderServer/Dashboard/totals.js"
    ,
#embed "../LarderServer/Dashboard/presets.js"
    ,
#embed "../LarderServer/Dashboard/faults.js"
    ,
#embed "../LarderServer/Dashboard/clock.js"
    ,
#embed "../LarderServer/Dashboard/worlds.js"
    ,
#embed "../LarderServer/Dashboard/acts.js"
    ,
#embed "../LarderServer/Dashboard/files.js"
    ,
#embed "../LarderServer/Dashboard/clients.js"
    ,
#embed "../LarderServer/Dashboard/main.js"
};
DOCUMENT(dashboard_script)
