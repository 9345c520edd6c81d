/* SPDX-License-Identifier: MIT
 *
 * ai.onnx.ml: the few operators whose outputs follow from their inputs alone.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_pass.h"

/* Columns of the last axis, picked by a list. */
static enum wg_code pick_features(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0), *picked = wg__shape_in(n, 1);
    wg__shape_pass_type(n, 0, 0);
    if (data == NULL || picked == NULL || data->rank == 0 || picked->rank == 0)
        return WG_OK;
    struct wg_shape out = data->rank == 1 ? wg__shape_of_rank(2) : *data;
    if (data->rank == 1)
        out.dims[0] = wg__dim(1);
    out.dims[out.rank - 1] = picked->dims[picked->rank - 1];
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* Which attribute holds the new labels tells their type. */
static enum wg_code label_encoder(struct wg_shape_node *n)
{
    static const struct {
        const char *name;
        int elem_type;
    } kinds[] = {
        {"values_strings", WG_ELEM_STRING},
        {"values_int64s", WG_ELEM_INT64},
        {"values_floats", WG_ELEM_FLOAT},
    };
    const struct wg_shape *data = wg__shape_in(n, 0);
    const struct wg_attribute *tensor = wg__shape_attribute(n, "values_tensor");
    if (data != NULL)
        wg__shape_set(n, 0, data);
    if (tensor != NULL && tensor->tensor != NULL)
        wg__shape_set_type(n, 0, tensor->tensor->elem_type);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (wg__shape_attribute(n, kinds[i].name) != NULL)
            wg__shape_set_type(n, 0, kinds[i].elem_type);
    }
    return WG_OK;
}

static enum wg_code as_float(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    wg__shape_set_type(n, 0, WG_ELEM_FLOAT);
    if (data != NULL)
        wg__shape_set(n, 0, data);
    return WG_OK;
}

/* One row a sample, one column a target. */
static enum wg_code regress(struct wg_shape_node *n, const char *targets)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    const int64_t columns = wg__shape_int(n, targets, 1);
    struct wg_shape out = wg__shape_of_rank(2);
    wg__shape_set_type(n, 0, WG_ELEM_FLOAT);
    if (data != NULL && data->rank == 2)
        out.dims[0] = data->dims[0];
    out.dims[1] = wg__dim(columns > 0 ? columns : WG_DIM_UNKNOWN);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code linear_regressor(struct wg_shape_node *n)
{
    return regress(n, "targets");
}

static enum wg_code tree_regressor(struct wg_shape_node *n)
{
    return regress(n, "n_targets");
}

static enum wg_code tree_ensemble(struct wg_shape_node *n)
{
    const enum wg_code code = regress(n, "n_targets");
    wg__shape_pass_type(n, 0, 0);
    return code;
}

static const struct wg_shape_op ops[] = {
    {"ArrayFeatureExtractor", pick_features, NULL},
    {"Binarizer", wg__shape_same, NULL},
    {"Imputer", wg__shape_same, NULL},
    {"LabelEncoder", label_encoder, NULL},
    {"LinearRegressor", linear_regressor, NULL},
    {"Normalizer", as_float, NULL},
    {"Scaler", as_float, NULL},
    {"TreeEnsemble", tree_ensemble, NULL},
    {"TreeEnsembleRegressor", tree_regressor, NULL},
};

const struct wg_shape_family wg__shape_ops_ml = {"ai.onnx.ml", ops, sizeof ops / sizeof ops[0]};
