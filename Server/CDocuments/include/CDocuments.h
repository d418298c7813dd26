#ifndef C_DOCUMENTS_H
#define C_DOCUMENTS_H

#include <stddef.h>

// The documents that the binary carries. They stand beside the code that reads them; documents.c has their paths.

typedef struct {
  const unsigned char *_Nonnull bytes;
  size_t count;
} CDocument;

// EmbeddedDocument of LarderBackend says what each is.
CDocument document_openapi(void);
CDocument document_control_openapi(void);
CDocument document_problems(void);
CDocument document_journeys(void);
CDocument document_scenarios(void);
CDocument document_dashboard_page(void);
CDocument document_dashboard_style(void);
CDocument document_dashboard_script(void);

#endif
