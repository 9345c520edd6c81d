/* SPDX-License-Identifier: MIT
 *
 * Arithmetic on named columns: see expression.h.
 *
 * A parser by recursive descent, one function a rule of the grammar, writes code for a stack:
 *
 *     "a / (b + 1)"        push a, push b, push 1, add, divide
 *
 * The code of a function with several arguments is that of two, once for each further one, so a
 * minimum of ten columns needs no more stack than one of two. How deep texts may nest is bounded
 * (the recursion is ours), and how deep the stack gets is counted while the code is written, so
 * evaluating has nothing to check and nothing to allocate.
 *
 * Owns: see the header.    Threads: evaluation is pure.
 */
#include "base/expression.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/utf8.h"

enum {
    STACK_MAX = 4 * WG_EXPRESSION_DEPTH_MAX,
    NUMBER_MAX = 64, /* characters of one number */
    CODE_FIRST = 16,
    TEXT_SHOWN_MAX = 80,
    WORD_SHOWN_MAX = 40
};

enum operation {
    PUSH,
    LOAD,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    POWER,
    NEGATE,
    MIN,
    MAX,
    SQRT,
    LOG,
    EXP,
    ABS
};

struct instruction {
    enum operation operation;
    size_t name;   /* of LOAD */
    double number; /* of PUSH */
};

struct wg_expression {
    struct instruction *code; /* owned */
    size_t length;
    size_t capacity;
    size_t name_count;
    char *names[WG_EXPRESSION_NAMES_MAX]; /* owned */
};

static const struct function {
    const char *name;
    enum operation operation;
    bool takes_many;
} functions[] = {
    {"min", MIN, true},  {"max", MAX, true},  {"sqrt", SQRT, false},
    {"log", LOG, false}, {"exp", EXP, false}, {"abs", ABS, false},
};

struct parser {
    const char *text;
    const char *cursor;
    struct wg_expression *program;
    unsigned depth;
    size_t stack; /* values that lie on the stack at this point of the code */
    struct wg_error *err;
};

static enum wg_code parse_sum(struct parser *parser);

/* -- Messages and code ------------------------------------------------------------------------- */

static enum wg_code fail_at(const struct parser *parser, const char *at, const char *what)
{
    return wg__fail(parser->err, WG_EINVAL, "'%.*s', column %zu: %s",
                    wg__utf8_cut(parser->text, strlen(parser->text), TEXT_SHOWN_MAX), parser->text,
                    (size_t)(at - parser->text) + 1, what);
}

static enum wg_code fail_memory(const struct parser *parser)
{
    return wg__fail(parser->err, WG_ENOMEM, "out of memory");
}

/* Adds an instruction which leaves `change` values more on the stack than there were. */
static enum wg_code emit(struct parser *parser, struct instruction instruction, int change)
{
    struct wg_expression *program = parser->program;
    if (program->length == program->capacity) {
        const size_t capacity = program->capacity != 0 ? 2 * program->capacity : CODE_FIRST;
        struct instruction *code = wg__realloc_array(program->code, capacity, sizeof *code);
        if (code == NULL)
            return fail_memory(parser);
        program->code = code;
        program->capacity = capacity;
    }
    program->code[program->length++] = instruction;
    if (change > 0)
        parser->stack++;
    else if (change < 0)
        parser->stack--;
    if (parser->stack > STACK_MAX)
        return fail_at(parser, parser->cursor, "nested too deeply");
    return WG_OK;
}

static enum wg_code emit_operation(struct parser *parser, enum operation operation, int change)
{
    return emit(parser, (struct instruction){.operation = operation}, change);
}

/* -- Words ------------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The next character that is no blank; it stays. */
static char peek(struct parser *parser)
{
    while (*parser->cursor == ' ' || *parser->cursor == '\t')
        parser->cursor++;
    return *parser->cursor;
}

static bool take(struct parser *parser, char wanted)
{
    if (peek(parser) != wanted)
        return false;
    parser->cursor++;
    return true;
}

static enum wg_code parse_number(struct parser *parser)
{
    const char *start = parser->cursor, *end = start;
    while (is_digit(*end) || *end == '.')
        end++;
    if (*end == 'e' || *end == 'E') { /* an exponent, when digits follow */
        const char *digits = end + 1;
        digits += *digits == '+' || *digits == '-';
        if (is_digit(*digits)) {
            end = digits;
            while (is_digit(*end))
                end++;
        }
    }
    char text[NUMBER_MAX + 1];
    const size_t length = (size_t)(end - start);
    double number = 0;
    if (length <= NUMBER_MAX) {
        memcpy(text, start, length);
        text[length] = '\0';
    }
    if (length > NUMBER_MAX || !wg__parse_double(text, &number))
        return fail_at(parser, start, "not a number that can be read");
    parser->cursor = end;
    return emit(parser, (struct instruction){.operation = PUSH, .number = number}, 1);
}

/* Pushes the value of a name, which is noted at its first use. */
static enum wg_code load(struct parser *parser, const char *start, size_t length)
{
    struct wg_expression *program = parser->program;
    size_t index = 0;
    while (index < program->name_count && (strlen(program->names[index]) != length ||
                                           memcmp(program->names[index], start, length) != 0))
        index++;
    if (index == WG_EXPRESSION_NAMES_MAX)
        return fail_at(parser, start, "one name too many, at most 32 are accepted");
    if (index == program->name_count) {
        char *name = wg__alloc(length + 1);
        if (name == NULL)
            return fail_memory(parser);
        memcpy(name, start, length);
        name[length] = '\0';
        program->names[program->name_count++] = name;
    }
    return emit(parser, (struct instruction){.operation = LOAD, .name = index}, 1);
}

static enum wg_code parse_quoted(struct parser *parser)
{
    const char *start = ++parser->cursor;
    const char *end = strchr(start, '`');
    if (end == NULL)
        return fail_at(parser, start - 1, "the backquote that opens here is never closed");
    if (end == start)
        return fail_at(parser, start - 1, "expected a name between the backquotes");
    parser->cursor = end + 1;
    return load(parser, start, (size_t)(end - start));
}

/* -- Rules ------------------------------------------------------------------------------------- */

/* The arguments behind the opening bracket, and the bracket that closes it. */
static enum wg_code parse_arguments(struct parser *parser, const struct function *function)
{
    enum wg_code code = parse_sum(parser);
    while (code == WG_OK && take(parser, ',')) {
        if (!function->takes_many)
            return fail_at(parser, parser->cursor - 1,
                           "expected ')', the function has one argument");
        code = parse_sum(parser);
        if (code == WG_OK)
            code = emit_operation(parser, function->operation, -1);
    }
    if (code != WG_OK)
        return code;
    if (!take(parser, ')'))
        return fail_at(parser, parser->cursor,
                       function->takes_many ? "expected ',', ')' or an operator"
                                            : "expected ')' or an operator");
    return function->takes_many ? WG_OK : emit_operation(parser, function->operation, 0);
}

/* A name, or a function when a bracket opens behind it. */
static enum wg_code parse_word(struct parser *parser)
{
    const char *start = parser->cursor, *end = start;
    while (is_letter(*end) || is_digit(*end) || *end == '.')
        end++;
    const size_t length = (size_t)(end - start);
    parser->cursor = end;
    if (!take(parser, '('))
        return load(parser, start, length);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strlen(functions[i].name) == length && memcmp(functions[i].name, start, length) == 0)
            return parse_arguments(parser, &functions[i]);
    return wg__fail(parser->err, WG_EINVAL,
                    "'%.*s', column %zu: '%.*s' is not a function (min, max, sqrt, log, exp, abs)",
                    wg__utf8_cut(parser->text, strlen(parser->text), TEXT_SHOWN_MAX), parser->text,
                    (size_t)(start - parser->text) + 1, wg__utf8_cut(start, length, WORD_SHOWN_MAX),
                    start);
}

static enum wg_code parse_primary(struct parser *parser)
{
    const char next = peek(parser);
    if (is_digit(next) || next == '.')
        return parse_number(parser);
    if (next == '`')
        return parse_quoted(parser);
    if (is_letter(next))
        return parse_word(parser);
    if (!take(parser, '('))
        return fail_at(parser, parser->cursor, "expected a number, a name, a function or '('");
    const enum wg_code code = parse_sum(parser);
    if (code != WG_OK)
        return code;
    return take(parser, ')') ? WG_OK
                             : fail_at(parser, parser->cursor, "expected ')' or an operator");
}

/* A minus reaches over a power: -2^2 is -4, and 2^-2 a quarter. */
static enum wg_code parse_factor(struct parser *parser)
{
    if (parser->depth == WG_EXPRESSION_DEPTH_MAX)
        return fail_at(parser, parser->cursor, "nested too deeply");
    parser->depth++;
    const bool is_negative = take(parser, '-');
    enum wg_code code = parse_primary(parser);
    if (code == WG_OK && take(parser, '^')) {
        code = parse_factor(parser);
        if (code == WG_OK)
            code = emit_operation(parser, POWER, -1);
    }
    if (code == WG_OK && is_negative)
        code = emit_operation(parser, NEGATE, 0);
    parser->depth--;
    return code;
}

static enum wg_code parse_product(struct parser *parser)
{
    enum wg_code code = parse_factor(parser);
    while (code == WG_OK) {
        const char sign = peek(parser);
        if (sign != '*' && sign != '/')
            return WG_OK;
        parser->cursor++;
        code = parse_factor(parser);
        if (code == WG_OK)
            code = emit_operation(parser, sign == '*' ? MULTIPLY : DIVIDE, -1);
    }
    return code;
}

static enum wg_code parse_sum(struct parser *parser)
{
    enum wg_code code = parse_product(parser);
    while (code == WG_OK) {
        const char sign = peek(parser);
        if (sign != '+' && sign != '-')
            return WG_OK;
        parser->cursor++;
        code = parse_product(parser);
        if (code == WG_OK)
            code = emit_operation(parser, sign == '+' ? ADD : SUBTRACT, -1);
    }
    return code;
}

enum wg_code wg__expression_compile(struct wg_expression **out, const char *text,
                                    struct wg_error *err)
{
    struct wg_expression *program = wg__alloc_zeroed(1, sizeof *program);
    if (program == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    struct parser parser = {.text = text, .cursor = text, .program = program, .err = err};
    enum wg_code code = parse_sum(&parser);
    if (code == WG_OK && peek(&parser) != '\0')
        code = fail_at(&parser, parser.cursor, "expected an operator or the end");
    if (code != WG_OK)
        wg__expression_free(program);
    else
        *out = program;
    return code;
}

void wg__expression_free(struct wg_expression *expression)
{
    if (expression == NULL)
        return;
    for (size_t i = 0; i < expression->name_count; i++)
        wg__free(expression->names[i]);
    wg__free(expression->code);
    wg__free(expression);
}

size_t wg__expression_name_count(const struct wg_expression *expression)
{
    return expression->name_count;
}

const char *wg__expression_name(const struct wg_expression *expression, size_t index)
{
    return expression->names[index];
}

/* -- Evaluation -------------------------------------------------------------------------------- */

static double apply_one(enum operation operation, double a)
{
    switch (operation) {
    case NEGATE:
        return -a;
    case SQRT:
        return sqrt(a);
    case LOG:
        return log(a);
    case EXP:
        return exp(a);
    default:
        return fabs(a);
    }
}

/* A minimum or maximum with something that is no number is none: fmin would hide it. */
static double apply_two(enum operation operation, double a, double b)
{
    switch (operation) {
    case ADD:
        return a + b;
    case SUBTRACT:
        return a - b;
    case MULTIPLY:
        return a * b;
    case DIVIDE:
        return a / b;
    case POWER:
        return pow(a, b);
    case MIN:
        return isnan(a) || a < b ? a : b;
    default:
        return isnan(a) || a > b ? a : b;
    }
}

double wg__expression_evaluate(const struct wg_expression *expression, const double *values)
{
    double stack[STACK_MAX + 1] = {0};
    size_t height = 0;
    for (size_t i = 0; i < expression->length; i++) {
        const struct instruction *instruction = &expression->code[i];
        switch (instruction->operation) {
        case PUSH:
            stack[height++] = instruction->number;
            break;
        case LOAD:
            stack[height++] = values[instruction->name];
            break;
        case NEGATE:
        case SQRT:
        case LOG:
        case EXP:
        case ABS:
            stack[height - 1] = apply_one(instruction->operation, stack[height - 1]);
            break;
        default:
            height--;
            stack[height - 1] = apply_two(instruction->operation, stack[height - 1], stack[height]);
            break;
        }
    }
    return stack[0];
}
